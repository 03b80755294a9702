// SPDX-License-Identifier: Apache-2.0
// Handles that this process imported: one of the runtime for each token, however many objects and mappings use it.
#pragma once

#include "../dma/handle_record.hpp"

#include <devshare/ticket.hpp>

namespace devshare::detail {

// A reference to the handle that a ticket names, imported now if it is the first. The ticket has been checked.
Result<HandleRecord*> import_handle(const TicketFields& fields, const Device& device, AccessMode access,
                                    Populate populate) noexcept;

// What the ticket said by which it was imported.
const TicketFields& fields_of_imported(const HandleRecord& record) noexcept;

// The same with everything that has to be checked first: for ImportedHandle.
Result<PhysicalValue> open_imported_handle(const ReceivedTicket& ticket, const Device& device,
                                           Populate populate) noexcept;

// For the registry's session listener; Lock::imports is held.
void forget_imported_handles() noexcept;
void imported_handles_forked() noexcept;

}  // namespace devshare::detail

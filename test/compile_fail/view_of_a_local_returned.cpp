// SPDX-License-Identifier: Apache-2.0
// A view does not outlive the object that it looks into.
// only: clang
// expect(clang): (address of|reference to) stack memory associated with (local variable|parameter) '.*' returned \[-Werror,-Wreturn-stack-address\]
#include <devshare/exported.hpp>
#include <devshare/imported.hpp>

using namespace devshare;

DeviceSpan<std::byte> right(DeviceMemory& memory) { return memory.bytes(); }

#if DEVSHARE_BAD == 1
DeviceSpan<std::byte> wrong(Result<DeviceMemory> result) {
  DeviceMemory memory = *std::move(result);
  return memory.bytes();
}
#endif
#if DEVSHARE_BAD == 2
DeviceSpan<std::byte> wrong(SharedMemoryKey<> key) { return key.bytes(); }
#endif
#if DEVSHARE_BAD == 3
DeviceSpan<std::byte> wrong(ImportedMapping mapping) { return mapping.bytes(); }
#endif
#if DEVSHARE_BAD == 4
DeviceSpan<const std::byte> wrong(const ImportedConstMapping mapping) { return mapping.bytes(); }
#endif
#if DEVSHARE_BAD == 5
const DeviceMemory& wrong(SharedMemoryKey<> key) { return key.owner(); }
#endif
#if DEVSHARE_BAD == 6
const TicketBytes& wrong(KeyTicket ticket) { return ticket.bytes(); }
#endif
#if DEVSHARE_BAD == 7
const std::byte* wrong(TicketBytes bytes) { return bytes.data(); }
#endif
#if DEVSHARE_BAD == 8
const ExporterIdentity& wrong(ReceivedTicket ticket) { return ticket.exporter(); }
#endif

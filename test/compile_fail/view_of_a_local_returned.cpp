// SPDX-License-Identifier: Apache-2.0
// A view does not outlive the object that it looks into.
// only: clang
// expect(clang): stack memory associated with .* returned \[-Werror,-Wreturn-stack-address\]
#include <devshare/exported.hpp>
#include <devshare/imported.hpp>

using namespace devshare;

DeviceSpan<std::byte> right(DeviceMemory& memory) { return memory.bytes(); }

#ifdef DEVSHARE_BAD
DeviceSpan<std::byte> mistake_1(Result<DeviceMemory> result) {
  DeviceMemory memory = *std::move(result);
  return memory.bytes();
}
#endif
#ifdef DEVSHARE_BAD
DeviceSpan<std::byte> mistake_2(SharedMemoryKey<> key) { return key.bytes(); }
#endif
#ifdef DEVSHARE_BAD
DeviceSpan<std::byte> mistake_3(ImportedMapping mapping) { return mapping.bytes(); }
#endif
#ifdef DEVSHARE_BAD
DeviceSpan<const std::byte> mistake_4(const ImportedConstMapping mapping) { return mapping.bytes(); }
#endif
#ifdef DEVSHARE_BAD
const DeviceMemory& mistake_5(SharedMemoryKey<> key) { return key.owner(); }
#endif
#ifdef DEVSHARE_BAD
const TicketBytes& mistake_6(KeyTicket ticket) { return ticket.bytes(); }
#endif
#ifdef DEVSHARE_BAD
const std::byte* mistake_7(TicketBytes bytes) { return bytes.data(); }
#endif
#ifdef DEVSHARE_BAD
const ExporterIdentity& mistake_8(ReceivedTicket ticket) { return ticket.exporter(); }
#endif

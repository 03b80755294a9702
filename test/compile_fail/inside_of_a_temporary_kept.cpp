// SPDX-License-Identifier: Apache-2.0
// What a temporary lends is gone with the end of the line.
// only: clang
// expect(clang): temporary .* will be destroyed at the end .*\[-Werror,-Wdangling\]
#include <devshare/exported.hpp>
#include <devshare/ticket.hpp>

using namespace devshare;

Error right(DeviceMemory memory) {
  const Error error = export_key(std::move(memory)).error().error();
  return error;
}
Errc right_too(const Device& device) {
  const Error& error = DeviceMemory::allocate(device, 64).error();  // by value, so that it lives as long as its name
  return error.kind();
}

#ifdef DEVSHARE_BAD
Errc mistake_1(DeviceMemory memory) {
  const Error& error = export_key(std::move(memory)).error().error();
  return error.kind();
}
#endif
#ifdef DEVSHARE_BAD
std::byte mistake_2(SharedMemoryKey<>& key, BarePid importer) {
  const std::byte* bytes = (*key.admit(importer)).bytes().data();
  return bytes[0];
}
#endif
#ifdef DEVSHARE_BAD
bool mistake_3(std::span<const std::byte> message) {
  const ExporterIdentity& exporter = (*ReceivedTicket::decode(message)).exporter();
  return exporter.pid == 0;
}
#endif

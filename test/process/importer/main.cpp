// SPDX-License-Identifier: Apache-2.0
// Imports the ticket in a file, looks at the first exporter's bytes and writes others: what an importer is that was
// started, or has become this, by exec. Exits with 2 where the import is refused.
#include "support/sharing.hpp"

#include <devshare/devshare.hpp>
#include <devshare/format.hpp>

#include <fstream>

using namespace devshare;

namespace {

Result<void> use(const ReceivedTicket& ticket, const Device& device) {
  DEVSHARE_TRY(mapping, ImportedMapping::open(ticket, device));
  test::Bytes bytes(mapping.bytes().size());
  DEVSHARE_CHECK(copy_to_host(device, bytes, mapping.bytes()));
  if (bytes != test::pattern(bytes.size())) fmt::print("other bytes than were shared\n");
  DEVSHARE_CHECK(copy_to_device(device, mapping.bytes(), test::pattern(bytes.size(), 1)));
  fmt::print("imported {} bytes\n", bytes.size());
  return std::move(mapping).close();
}

Result<void> run(const char* path) {
  test::Bytes message(ticket_size);
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(message.data()), ticket_size);
  DEVSHARE_TRY(ticket, ReceivedTicket::decode(message));
  DEVSHARE_TRY(runtime, Runtime::open());
  DEVSHARE_TRY(device, runtime.device(DeviceId{0}));
  return use(ticket, device);
}

}  // namespace

int main(int, char** arguments) {
  const auto done = run(arguments[1]);
  if (done) return 0;
  fmt::print("{}\n", done.error());
  return 2;
}

// SPDX-License-Identifier: Apache-2.0
// Send the key first and admit the importer afterwards: the importer is refused, 507899, and nobody says why (R13).
// reason: nobody was admitted: a ticket comes from admit(pid) (R13)
#include <devshare/devshare.hpp>

using namespace devshare;

void send(const TicketBytes&);

Result<void> share(SharedMemoryKey<>& key, BarePid importer) {
  send(key.ticket().bytes());
  DEVSHARE_CHECK(key.admit(importer));
  return {};
}

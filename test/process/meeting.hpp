// SPDX-License-Identifier: Apache-2.0
// An exporter and an importer that are connected before their story begins.
#pragma once

#include "key_process.hpp"

namespace devshare::test {

// Both know each other after this, and have nothing of each other's.
inline std::int32_t meet_importer(Actor& me, const Process& a, std::string_view importer = "B") {
  void* memory = a.allocate();
  const Key greeting = a.export_key(memory, open_to_all);
  me.send(importer, greeting);
  const auto number = me.receive<std::int32_t>(importer);
  a.close(greeting);
  a.free(memory);
  return number;
}
inline void meet_exporter(Actor& me, const Process& b) {
  const Key greeting = me.receive<Key>("A");
  b.import_key(greeting);
  b.close(greeting);
  me.send("A", b.bare_pid());
}

}  // namespace devshare::test

// SPDX-License-Identifier: Apache-2.0
// What a story of deaths leaves behind: nothing but one inert file.
#pragma once

#include "support/child.hpp"
#include "support/sharing.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace devshare::test {

// A process that joins after all of them: nothing of theirs is on the devices, and it can use them.
inline void nothing_is_left_of(const Story& story) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(story.state_directory())) {
    files.push_back(entry.path().filename().string());
  }
  CAPTURE(files);
  CHECK(files.size() <= 1);  // the state of the devices, which says that nobody is there
  const ChildEnd end = in_child(
      [] {
        const auto runtime = Runtime::open();
        demand(static_cast<bool>(runtime), "the runtime opens");
        demand(host::device_state_scope() == "machine", "and sees the devices of all processes");
        demand(host::bytes_in_use(0) == 0 && host::bytes_in_use(1) == 0, "which are empty");
        std::int32_t on = -1;
        demand(api().aclrtDevicePeerAccessStatus(0, 1, &on) == 0 && on == 0, "and have no access to each other");
        demand(static_cast<bool>(runtime->finalize()), "the runtime is finalized");
      },
      {.set = {{"DEVSHARE_HOST_STATE", story.state_directory()}}});
  INFO(end.in_words());
  CHECK(end.good());
}

}  // namespace devshare::test

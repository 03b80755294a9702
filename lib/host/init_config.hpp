// SPDX-License-Identifier: Apache-2.0
// What aclInit's configuration file asks for, of the things that the host runtime has.
#pragma once

#include <devshare/acl/types.hpp>

#include <string_view>

namespace devshare::host {

struct InitConfig {
  bool error_texts_of_process = false;  // err_msg_mode "1": aclGetRecentErrMsg tells of all threads
};

// Reads the content of the file at `path`. Refuses with 100003 what is no JSON object, with 100000 an err_msg_mode that
// is not "0" or "1". Members that are not known here are somebody else's (dump, profiler) and are passed over.
[[nodiscard]] acl::aclError read_init_config(std::string_view content, std::string_view path, InitConfig* out);

}  // namespace devshare::host

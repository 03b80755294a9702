// SPDX-License-Identifier: Apache-2.0
// The journal: a line of JSON for each call in a file that processes may share, and the calls of this process in
// memory. Not synchronised: instrument.cpp holds its lock.
#pragma once

#include "file_identity.hpp"
#include "unique_fd.hpp"

#include <devshare/instrument.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace devshare::host {

class Journal {
 public:
  // "" closes it. Returns 0 or the errno of the failure, after which it is what it was.
  int write_to(std::string_view path);
  void keep(bool on);
  const std::vector<CallRecord>& kept() const noexcept { return kept_; }

  bool on() const noexcept { return file_ || keeping_; }
  void add(CallRecord record);
  std::uint64_t lost() const noexcept { return lost_; }

 private:
  bool write_line(const CallRecord& record);

  UniqueFd file_;
  FileIdentity identity_;
  bool keeping_ = false;
  std::vector<CallRecord> kept_;
  std::uint64_t lost_ = 0;
};

}  // namespace devshare::host

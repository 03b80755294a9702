// SPDX-License-Identifier: Apache-2.0
// What an event between processes is made of: two counters on a page that all who have the event map, for recordings
// that were begun and for those that have happened. A sealed memfd: nobody can shrink it under the others.
//
// Nobody is woken: who waits looks again every millisecond, and nobody else ever does.
#pragma once

#include "unique_fd.hpp"

#include <devshare/acl/types.hpp>

#include <chrono>
#include <cstdint>
#include <memory>

namespace devshare::host {

class SharedMoment {
 public:
  static constexpr std::uint64_t bytes = 4096;  // of the file
  static constexpr std::chrono::milliseconds look_again{1};

  // A new one, or a refusal: descriptor_limit, no_space, mapping_limit, backend_unavailable.
  static acl::aclError create(std::shared_ptr<SharedMoment>* out);
  // One of another process, whose size and seals the caller has checked.
  static acl::aclError map(UniqueFd file, std::shared_ptr<SharedMoment>* out);
  ~SharedMoment();
  SharedMoment(const SharedMoment&) = delete;
  SharedMoment& operator=(const SharedMoment&) = delete;

  std::uint64_t begin() noexcept;               // a recording: its number
  std::uint64_t newest() const noexcept;        // 0: it was never recorded
  void happens(std::uint64_t number) noexcept;  // and with it those that were begun before
  bool happened(std::uint64_t number) const noexcept;

  int descriptor() const noexcept { return file_.get(); }  // for importers; -1 where it was imported
  bool sealed() const noexcept { return sealed_; }
  void close_descriptor() noexcept { file_ = UniqueFd(); }

 private:
  struct Words;
  explicit SharedMoment(Words* words) noexcept : words_(words) {}

  Words* words_;
  UniqueFd file_;
  bool sealed_ = true;
};

}  // namespace devshare::host

// SPDX-License-Identifier: Apache-2.0
#include "journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>

namespace devshare::host {

int Journal::write_to(std::string_view path) {
  UniqueFd opened;
  if (!path.empty()) {
    opened = UniqueFd(::open(std::string(path).c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666));
    if (!opened) return errno;
  }
  // A number that the program has closed behind our back and used again is not ours to close.
  if (file_ && FileIdentity::of(file_.get()) != identity_) (void)file_.release();
  file_ = std::move(opened);
  identity_ = file_ ? FileIdentity::of(file_.get()) : FileIdentity{};
  return 0;
}

void Journal::keep(bool on) {
  keeping_ = on;
  kept_.clear();
}

void Journal::add(CallRecord record) {
  if (file_ && !write_line(record)) ++lost_;
  if (keeping_) kept_.push_back(std::move(record));
}

bool Journal::write_line(const CallRecord& record) {
  if (FileIdentity::of(file_.get()) != identity_) {
    (void)file_.release();
    return false;
  }
  fmt::memory_buffer line;
  fmt::format_to(std::back_inserter(line),
                 R"({{"order":{},"took":{},"pid":{},"tid":{},"call":"{}","arguments":{},"result":{}}})"
                 "\n",
                 record.order, record.took, record.pid, record.tid, entry_name(record.call),
                 record.arguments.empty() ? "{}" : record.arguments, record.result);
  ssize_t written = 0;
  do {
    written = ::write(file_.get(), line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  return written == static_cast<ssize_t>(line.size());
}

}  // namespace devshare::host

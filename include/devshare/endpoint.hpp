// SPDX-License-Identifier: Apache-2.0
// Endpoint: where a lender and its borrowers meet.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace devshare {

// A Unix socket, by one of three names. A value. A name that is too long (107 bytes), empty or holds a zero byte makes
// an endpoint that every use refuses as invalid_argument.
class Endpoint {
 public:
  enum class Kind : std::uint8_t { path, abstract, descriptor };

  // A file in a directory that both sides see: the way across containers. The lender makes it, beside a lock file
  // `<path>.lock`, and removes both when it ends; what a killed lender left is taken over, what is no socket is never
  // touched.
  static constexpr Endpoint path(std::string_view path) noexcept { return Endpoint(Kind::path, path); }
  // A name of the kernel's, which leaves no file. Seen by all processes of one network namespace.
  static constexpr Endpoint abstract(std::string_view name) noexcept { return Endpoint(Kind::abstract, name); }
  // A descriptor that this process inherited or was passed: one end of a socketpair(AF_UNIX, SOCK_SEQPACKET) for one
  // borrower, or (lender) a listening socket. The lender or the borrower takes it over, and closes it.
  static constexpr Endpoint descriptor(int fd) noexcept { return Endpoint(fd); }

  constexpr Kind kind() const noexcept { return kind_; }
  constexpr std::string_view name() const noexcept { return {name_.data(), size_}; }
  constexpr int fd() const noexcept { return fd_; }
  // Whether the name can be one.
  constexpr bool usable() const noexcept {
    if (kind_ == Kind::descriptor) return fd_ >= 0;
    return size_ > 0 && name().find('\0') == std::string_view::npos;
  }

 private:
  static constexpr std::size_t longest_name = 107;  // sockaddr_un::sun_path, less the zero that ends it or begins it

  constexpr Endpoint(Kind kind, std::string_view name) noexcept : kind_(kind) {
    if (name.size() > longest_name) return;
    size_ = static_cast<std::uint8_t>(name.copy(name_.data(), name.size()));
  }
  explicit constexpr Endpoint(int fd) noexcept : kind_(Kind::descriptor), fd_(fd) {}

  Kind kind_;
  std::uint8_t size_ = 0;
  std::array<char, longest_name> name_{};
  int fd_ = -1;
};

}  // namespace devshare

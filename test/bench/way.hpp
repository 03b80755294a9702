// SPDX-License-Identifier: Apache-2.0
// A way in which one process shares memory with another, in the steps that a driver times. One object serves both
// processes: the driver makes it, then forks.
//
// A failure ends the process with its reason: what does not work is not measured.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace devshare::bench {

// What is done with the memory on both sides: its first and its last byte are written by the exporter and read by the
// importer. By copies, as a host program does with device memory; or through the memory mapped, as a kernel does. Or all
// of it is: a byte of each page, through the memory mapped.
enum class Touch { copies, views, all_pages };

// What is asked of the machine's pages, on both sides.
struct Pages {
  bool huge = false;
  bool populate = false;
};

inline constexpr std::byte first_byte{7};
inline constexpr std::byte last_byte{9};

// What the exporter sends to the importer: a ticket, a key or a name, of the same length for all.
using Message = std::array<std::byte, 256>;

class Way {
 public:
  virtual ~Way() = default;

  // Importer: by what number it is known. Exporter: admits the process with that number to all it will share.
  virtual std::int32_t introduce() = 0;
  virtual void meet(std::int32_t importer) = 0;

  // Exporter: makes memory, touches it, publishes it; ends everything it has shared.
  virtual Message share(std::size_t size) = 0;
  virtual void end() = 0;

  // Importer: opens what the message names, touches it, closes it.
  virtual void use(const Message& message, std::size_t size) = 0;
};

[[noreturn]] void give_up(const std::string& what);  // errno is added when it is set

// devshare on the host runtime, through its public headers: by key, or by V2 tokens of mapped physical memory.
std::unique_ptr<Way> by_devshare(Touch touch);
std::unique_ptr<Way> by_devshare_handles(Touch touch);
std::unique_ptr<Way> by_devshare_in(Pages pages);  // by key, and all pages are touched

}  // namespace devshare::bench

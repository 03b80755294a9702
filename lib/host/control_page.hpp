// SPDX-License-Identifier: Apache-2.0
// The control page of an exporting process: how importers learn without a call that a key has ended or that its process
// has (R20, R22). The exporter writes, importers map it read-only and load; nothing wakes anybody.
//
//   slots        one word for each key, generation * 2 + live: an importer holds the word it was given and compares
//   token words  how many tokens have ended: of those whose slots are the same modulo the number of words
//   death word   the futex of a robust mutex that the exporter's service thread holds; when that thread ends in
//                whatever way, SIGKILL and exec included, the kernel sets FUTEX_OWNER_DIED in it
//
// The file is sealed against resizing and, once the exporter has its own mapping, against every later write.
#pragma once

#include "block.hpp"
#include "unique_fd.hpp"

#include <atomic>
#include <cstdint>
#include <memory>

namespace devshare::host {

inline constexpr std::uint32_t most_keys = 480'000;  // of one process, all tombstones included

inline constexpr std::uint32_t token_words = 2048;

struct ControlLayout;

// The exporter's side. Slots are turned under the lock of the export table; hold and release come from the service
// thread.
class ControlPage {
 public:
  // 0, or the errno of what the kernel refused.
  static int create(std::uint64_t instance, std::unique_ptr<ControlPage>* out);
  ~ControlPage();
  ControlPage(const ControlPage&) = delete;
  ControlPage& operator=(const ControlPage&) = delete;

  int descriptor() const noexcept { return file_.get(); }
  std::uint64_t turn_on(std::uint32_t slot) noexcept;  // a new generation; returns the word that importers expect
  void turn_off(std::uint32_t slot) noexcept;
  std::uint64_t token_word(std::uint32_t slot) const noexcept;  // what importers of a token expect
  void token_ends(std::uint32_t slot) noexcept;
  ExporterWatch watch(std::uint32_t slot, std::uint64_t expected) const noexcept;

  void hold_death_word() noexcept;
  void release_death_word() noexcept;                       // an orderly end; all slots have been turned off
  void close_descriptor() noexcept { file_ = UniqueFd(); }  // in a forked child

 private:
  ControlPage(UniqueFd file, ControlLayout* layout) noexcept : file_(std::move(file)), layout_(layout) {}

  UniqueFd file_;
  ControlLayout* layout_;
};

// An importer's side, mapped while anything imported from that exporter lives. Thread-safe: it only reads.
class ControlPageView {
 public:
  // Null when `file` is not a sealed control page of this layout and instance, or cannot be mapped.
  static std::shared_ptr<const ControlPageView> map(const UniqueFd& file, std::uint64_t instance);
  ~ControlPageView();
  ControlPageView(const ControlPageView&) = delete;
  ControlPageView& operator=(const ControlPageView&) = delete;

  // What an import of a key looks at. Valid while this view lives. `slot` is below most_keys.
  ExporterWatch watch(std::uint32_t slot, std::uint64_t expected, bool watch_death) const noexcept;
  // The same of a token. That others have ended may look as if it had, and then its exporter is to be asked.
  ExporterWatch token_watch(std::uint32_t slot, std::uint64_t expected) const noexcept;

 private:
  explicit ControlPageView(const ControlLayout* layout) noexcept : layout_(layout) {}

  const ControlLayout* layout_;
};

}  // namespace devshare::host

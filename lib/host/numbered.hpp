// SPDX-License-Identifier: Apache-2.0
// Objects that programs name by a handle. A handle is a number and never a pointer to something: a slot and a serial
// that no other object of the table has had, so a destroyed or invented one is found out and never followed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace devshare::host {

// T has `std::uint64_t bits`, 0 while it is free, and `std::uint32_t slot`, is put back by `T::end()`, and has a `kind`
// of its own, so that a handle of one table is none of another. Records never move. The lock is the caller's.
template <class T>
class Numbered {
 public:
  // Null when there are `most` already.
  T* make(std::size_t most) {
    if (live_ >= most || live_ > slot_mask - 1) return nullptr;
    if (free_.empty()) {
      const auto slot = static_cast<std::uint32_t>(by_slot_.size());
      by_slot_.push_back(&records_.emplace_back());
      by_slot_.back()->slot = slot;
      free_.push_back(slot);
    }
    T& record = *by_slot_[free_.back()];
    free_.pop_back();
    record.bits = ++last_serial_ << (slot_bits + kind_bits) | T::kind << slot_bits | (record.slot + 1);
    ++live_;
    return &record;
  }

  T* find(void* handle) noexcept {
    const auto bits = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(handle));
    const std::uint64_t slot = (bits & slot_mask) - 1;
    T* const record = slot < by_slot_.size() ? by_slot_[slot] : nullptr;
    return record != nullptr && record->bits == bits ? record : nullptr;
  }
  static void* handle_of(const T& record) noexcept { return reinterpret_cast<void*>(record.bits); }

  void end(T& record) noexcept {
    record.end();
    record.bits = 0;
    free_.push_back(record.slot);
    --live_;
  }

  // By number: `visit` may release the lock, and more objects be made meanwhile.
  template <class Visit>
  void for_each(Visit visit) {
    for (std::size_t slot = 0; slot < by_slot_.size(); ++slot) {
      if (by_slot_[slot]->bits != 0) visit(*by_slot_[slot]);
    }
  }
  void end_all() noexcept {
    for_each([this](T& record) { end(record); });
  }

  std::size_t live() const noexcept { return live_; }

 private:
  static constexpr std::uint64_t slot_bits = 20;
  static constexpr std::uint64_t kind_bits = 4;
  static constexpr std::uint64_t slot_mask = (std::uint64_t{1} << slot_bits) - 1;

  std::deque<T> records_;
  std::vector<T*> by_slot_;  // where each is: a deque finds its elements by a division
  std::vector<std::uint32_t> free_;
  std::uint64_t last_serial_ = 0;
  std::size_t live_ = 0;
};

}  // namespace devshare::host

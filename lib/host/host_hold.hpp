// SPDX-License-Identifier: Apache-2.0
// Page-locked host memory that tasks in streams use. As device memory, it is neither freed nor unregistered meanwhile:
// the attempt is refused (R5).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace devshare::host {

// How many tasks use a range of host memory. Up under the lock of whoever keeps the range, down without it.
class TaskCount {
 public:
  void add() noexcept { tasks_.fetch_add(1, std::memory_order_relaxed); }
  void drop() noexcept { tasks_.fetch_sub(1, std::memory_order_release); }
  bool any() const noexcept { return tasks_.load(std::memory_order_acquire) != 0; }

 private:
  std::atomic<std::uint32_t> tasks_{0};
};

// What one task uses: a range, or several that adjoin. Empty for device memory, and for memory that is not page-locked.
class HostHold {
 public:
  HostHold() noexcept = default;
  HostHold(HostHold&& other) noexcept : first_(std::exchange(other.first_, nullptr)), others_(std::move(other.others_)) {}
  HostHold& operator=(HostHold&& other) noexcept {
    HostHold taken(std::move(other));
    std::swap(first_, taken.first_);
    std::swap(others_, taken.others_);
    return *this;
  }
  ~HostHold() {
    if (first_ == nullptr) return;
    first_->drop();
    if (others_ == nullptr) return;
    for (TaskCount* const range : *others_) range->drop();
  }

  bool holds() const noexcept { return first_ != nullptr; }

  // Under the lock of whoever keeps the range.
  void add(TaskCount& range) {
    if (first_ == nullptr) {
      first_ = &range;
    } else {
      if (others_ == nullptr) others_ = std::make_unique<std::vector<TaskCount*>>();
      others_->push_back(&range);
    }
    range.add();
  }

 private:
  TaskCount* first_ = nullptr;
  std::unique_ptr<std::vector<TaskCount*>> others_;
};

}  // namespace devshare::host

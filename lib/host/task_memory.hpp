// SPDX-License-Identifier: Apache-2.0
// The memory of tasks that are over, kept for the next ones: a stream that is kept busy allocates nothing, and the two
// threads at its ends do not meet in the allocator.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>

namespace devshare::host {

// Pieces of memory, each as large as a task is at least. Owns them.
class TaskMemory {
 public:
  static constexpr std::size_t piece_bytes = 144;  // which a copy fills

  static void* allocate(std::size_t bytes) { return ::operator new(std::max(bytes, piece_bytes)); }
  static void free(void* piece) noexcept { ::operator delete(piece); }

  TaskMemory() noexcept = default;
  TaskMemory(TaskMemory&& other) noexcept
      : first_(std::exchange(other.first_, nullptr)),
        last_(std::exchange(other.last_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  ~TaskMemory() {
    while (first_ != nullptr) free(take());
  }
  TaskMemory& operator=(TaskMemory&&) = delete;

  std::size_t size() const noexcept { return size_; }

  void add(void* piece) noexcept {
    first_ = ::new (piece) Piece{first_};
    if (last_ == nullptr) last_ = first_;
    ++size_;
  }
  void add(TaskMemory&& others) noexcept {
    if (others.first_ == nullptr) return;
    others.last_->next = first_;
    if (last_ == nullptr) last_ = others.last_;
    first_ = std::exchange(others.first_, nullptr);
    others.last_ = nullptr;
    size_ += std::exchange(others.size_, 0);
  }
  // Null when there is none.
  void* take() noexcept {
    Piece* const piece = first_;
    if (piece == nullptr) return nullptr;
    first_ = piece->next;
    if (first_ != nullptr) {
      prepare(first_);
    } else {
      last_ = nullptr;
    }
    --size_;
    return piece;
  }

 private:
  struct Piece {
    Piece* next;
  };
  // Who ended the task that was there had it last on another processor, mostly: it is fetched before it is needed.
  static void prepare(const Piece* piece) noexcept {
    __builtin_prefetch(piece, 1);
    __builtin_prefetch(reinterpret_cast<const std::byte*>(piece) + piece_bytes / 2, 1);
  }
  Piece* first_ = nullptr;
  Piece* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace devshare::host

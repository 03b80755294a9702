// SPDX-License-Identifier: Apache-2.0
#include "shared_moment.hpp"

#include "backing.hpp"
#include "mapping_limit.hpp"

#include <devshare/acl/codes.hpp>

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <new>
#include <utility>

namespace devshare::host {

struct SharedMoment::Words {
  std::atomic<std::uint64_t> begun{0};
  std::atomic<std::uint64_t> happened{0};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "the words are shared between processes");

acl::aclError SharedMoment::create(std::shared_ptr<SharedMoment>* out) {
  Backing backing;
  if (const acl::aclError refused = make_backing(bytes, false, &backing)) return refused;
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, backing.descriptor.get(), 0);
  if (at == MAP_FAILED) return refuse_mapping(bytes, errno);
  out->reset(new SharedMoment(::new (at) Words));
  (*out)->file_ = std::move(backing.descriptor);
  (*out)->sealed_ = backing.sealed;
  return acl::code::success;
}

acl::aclError SharedMoment::map(UniqueFd file, std::shared_ptr<SharedMoment>* out) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED) return refuse_mapping(bytes, errno);
  out->reset(new SharedMoment(static_cast<Words*>(at)));
  return acl::code::success;
}

SharedMoment::~SharedMoment() { ::munmap(words_, bytes); }

std::uint64_t SharedMoment::begin() noexcept { return words_->begun.fetch_add(1, std::memory_order_acq_rel) + 1; }

std::uint64_t SharedMoment::newest() const noexcept { return words_->begun.load(std::memory_order_acquire); }

void SharedMoment::happens(std::uint64_t number) noexcept {
  std::uint64_t before = words_->happened.load(std::memory_order_relaxed);
  while (before < number && !words_->happened.compare_exchange_weak(before, number, std::memory_order_release,
                                                                    std::memory_order_relaxed)) {
  }
}

bool SharedMoment::happened(std::uint64_t number) const noexcept {
  return words_->happened.load(std::memory_order_acquire) >= number;
}

}  // namespace devshare::host

// SPDX-License-Identifier: Apache-2.0
// Blocks as those see them who look one up: by an address, for as long as they pin it.
#include "block.hpp"
#include "block_bytes.hpp"
#include "block_pool.hpp"
#include "failure.hpp"
#include "mapping_limit.hpp"

#include <linux/futex.h>

#include <cerrno>
#include <utility>

namespace devshare::host {

bool ExporterWatch::gone_now() const noexcept {
  if (slot != nullptr && slot->load() != expected) return true;
  return death != nullptr && (death->load(std::memory_order_acquire) & FUTEX_OWNER_DIED) != 0;
}

PinnedBlock::PinnedBlock(const void* address, Pin pin) noexcept : pin_(pin) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  Block* const block = record_at(at);
  if (block == nullptr || !block->pin(pin)) return;
  // Between the table and the pin the record may have become another block's.
  if (block->contains(at)) [[likely]] {
    block_ = block;
  } else {
    block->unpin(pin);
  }
}

void PinnedBlock::unpin() noexcept { block_->unpin(pin_); }

std::uintptr_t PinnedBlock::base() const noexcept { return block_->base; }
std::uint64_t PinnedBlock::size() const noexcept { return block_->size; }
std::uint64_t PinnedBlock::backed() const noexcept { return block_->backed; }
std::uint64_t PinnedBlock::page_size() const noexcept { return block_->page_size; }
std::int32_t PinnedBlock::device() const noexcept { return block_->device; }
std::int32_t PinnedBlock::local_device() const noexcept { return block_->local_device; }
Origin PinnedBlock::origin() const noexcept { return block_->origin; }
bool PinnedBlock::read_only() const noexcept { return block_->read_only; }
bool PinnedBlock::p2p() const noexcept { return block_->p2p; }
bool PinnedBlock::sealed() const noexcept { return block_->sealed; }
std::uint64_t PinnedBlock::page_bytes() const noexcept { return block_->page_bytes; }
bool PinnedBlock::populated() const noexcept { return block_->populated.load(std::memory_order_acquire); }
std::uint64_t PinnedBlock::id() const noexcept { return block_->id; }
const std::shared_ptr<const PhysicalMemory>& PinnedBlock::memory() const noexcept { return block_->memory; }
const AliasRange* PinnedBlock::alias() const noexcept { return block_->alias; }
bool PinnedBlock::accessible() const noexcept { return block_->accessible.load(std::memory_order_acquire); }
bool PinnedBlock::exporter_gone() const noexcept { return block_->watch.gone(); }

int PinnedBlock::descriptor() const noexcept {
  return block_->descriptor_users.load(std::memory_order_acquire) != 0 ? block_->descriptor : -1;
}

void EndedPins::add(PinnedBlock&& ended) noexcept {
  Block* const block = std::exchange(ended.block_, nullptr);
  if (block == nullptr) return;
  for (Sum& sum : sums_) {
    if (sum.block != block) continue;
    sum.pins += static_cast<std::uint64_t>(ended.pin_);
    return;
  }
  Sum& sum = sums_[next_++ % sums_.size()];
  give_up(sum);
  sum = {block, static_cast<std::uint64_t>(ended.pin_)};
}

void EndedPins::give_up(const Sum& sum) noexcept {
  if (sum.block != nullptr) sum.block->unpin(sum.pins);
}

EndedPins::~EndedPins() {
  for (const Sum& sum : sums_) give_up(sum);
}

bool PinnedBlock::may_be_viewed() const {
  if (block_->watch.gone()) {
    (void)refuse(acl::code::rt_drv_internal, Reason::exporter_gone, "the exporter has no longer this memory");
    return false;
  }
  if (accessible()) return true;
  (void)refuse(acl::code::rt_drv_internal, Reason::no_access,
               "this memory was mapped without access: aclrtMemSetAccess gives it");
  return false;
}

std::byte* PinnedBlock::view() const {
  if (!may_be_viewed()) return nullptr;
  std::byte* const view = map_block(*block_);
  if (view == nullptr) (void)refuse_mapping(block_->backed, errno);
  return view;
}

}  // namespace devshare::host

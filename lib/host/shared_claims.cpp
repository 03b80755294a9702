// SPDX-License-Identifier: Apache-2.0
#include "shared_claims.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

namespace devshare::host {
namespace {

constexpr std::size_t claims_per_step = 4096 / sizeof(SharedClaim);  // for which storage is reserved at once

bool owner_is_gone(const StateFile& file, std::uint64_t owner) noexcept {
  const std::size_t slot = claim_slot(owner);
  return slot >= file.used_slots().size() || claim_owner(slot, file.slot(slot).generation.load()) != owner;
}

}  // namespace

bool claimed_by_anybody(const StateFile& file, std::uint64_t block) noexcept {
  for (const SharedClaim& claim : file.used_claims()) {
    if (claim.block.load() == block && claim.owner.load() != 0) return true;
  }
  return false;
}

std::optional<std::size_t> add_shared_claim(StateFile& file, std::uint64_t owner, std::int32_t device,
                                            std::uint64_t block, std::uint64_t bytes) noexcept {
  const std::size_t end = file.used_claims().size();
  std::size_t index = end;
  if (end == shared_claim_count) {  // else holes are left to whoever adds the table up
    index = 0;
    while (index < end && file.claim(index).owner.load() != 0) ++index;
    if (index == end) return std::nullopt;
  } else if (end % claims_per_step == 0 && !file.reserve_claims(end + claims_per_step)) {
    return std::nullopt;
  }
  SharedClaim& claim = file.claim(index);
  claim.block.store(block);
  claim.bytes.store(bytes);
  claim.device.store(static_cast<std::uint64_t>(device));
  if (index == end) file.header().claims_end.store(static_cast<std::uint32_t>(end + 1));
  claim.owner.store(owner);
  return index;
}

void add_up_shared_claims(StateFile& file) {
  struct Held {
    std::uint64_t block = 0;
    std::uint64_t bytes = 0;
    std::uint64_t device = 0;
  };
  std::vector<Held> held;
  std::size_t end = 0;
  const auto claims = file.used_claims();
  for (std::size_t index = 0; index < claims.size(); ++index) {
    SharedClaim& claim = claims[index];
    std::uint64_t owner = claim.owner.load();
    if (owner == 0) continue;
    if (owner_is_gone(file, owner)) {
      claim.owner.compare_exchange_strong(owner, 0);
      continue;
    }
    end = index + 1;
    held.push_back({claim.block.load(), claim.bytes.load(), claim.device.load()});
  }
  file.header().claims_end.store(static_cast<std::uint32_t>(end));
  std::sort(held.begin(), held.end(), [](const Held& a, const Held& b) { return a.block < b.block; });
  std::array<std::uint64_t, state_devices> sum{};
  for (std::size_t i = 0; i < held.size(); ++i) {
    if ((i == 0 || held[i].block != held[i - 1].block) && held[i].device < state_devices) {
      sum[held[i].device] += held[i].bytes;
    }
  }
  for (std::size_t device = 0; device < state_devices; ++device) file.header().shared[device].store(sum[device]);
}

void tidy_shared_claims(StateFile& file) {
  const std::size_t end = file.used_claims().size();
  if (end >= claims_per_step && std::has_single_bit(end)) add_up_shared_claims(file);
}

void drop_shared_claim(const StateFile& file, std::size_t index, std::uint64_t owner) noexcept {
  file.claim(index).owner.compare_exchange_strong(owner, 0);
}

}  // namespace devshare::host

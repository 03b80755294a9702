// SPDX-License-Identifier: Apache-2.0
#include "shared_claims.hpp"

#include <algorithm>
#include <utility>

namespace devshare::host {
namespace {

bool take(SharedClaim& claim, ClaimWord word) noexcept {
  std::uint64_t nobody = 0;
  return claim.owner.load() == 0 && claim.owner.compare_exchange_strong(nobody, word.bits);
}

bool advance(SharedClaim& claim, ClaimWord word, ClaimStage from, ClaimStage to) noexcept {
  std::uint64_t expected = word.at(from).bits;
  return claim.owner.compare_exchange_strong(expected, word.at(to).bits);
}

// Before an entry can be seen, so that whoever could see it looks at it.
void include(const StateFile& file, std::uint32_t index) noexcept {
  std::atomic<std::uint32_t>& end = file.header().claims_end;
  for (std::uint32_t seen = end.load(); seen <= index && !end.compare_exchange_weak(seen, index + 1);) {
  }
}

std::optional<std::uint32_t> take_an_entry(const StateFile& file, FreeClaims* free, ClaimWord word) {
  while (!free->given_back.empty()) {
    const std::uint32_t index = free->given_back.back();
    free->given_back.pop_back();
    if (take(file.claim(index), word)) return index;
  }
  const std::uint32_t stored = file.header().claims_stored.load();
  for (int round = 0; round < 2; ++round) {  // from where the last search ended, then from the start
    for (; free->next < stored; ++free->next) {
      if (take(file.claim(free->next), word)) return free->next++;
    }
    free->next = 0;
  }
  free->next = stored;
  return std::nullopt;
}

// What an entry says, if it has come that far; all of it from one claim.
std::optional<ClaimedBlock> read(const SharedClaim& claim, ClaimStage least) noexcept {
  while (true) {
    const ClaimWord before{claim.owner.load()};
    if (before.stage() < least) return std::nullopt;
    const ClaimedBlock what{claim.block.load(), claim.bytes.load(), static_cast<std::int32_t>(claim.device.load())};
    if (before.same_claim({claim.owner.load()})) return what;
  }
}

DeviceSums sums_of(const StateFile& file, ClaimStage least) {
  DeviceSums sums{};
  std::vector<ClaimedBlock> held;
  for (const SharedClaim& claim : file.used_claims()) {
    if (const auto what = read(claim, least)) held.push_back(*what);
  }
  std::sort(held.begin(), held.end(), [](const auto& a, const auto& b) { return a.block < b.block; });
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (i != 0 && held[i].block == held[i - 1].block) continue;
    const auto device = static_cast<std::size_t>(held[i].device);
    if (device < sums.size()) sums[device] += held[i].bytes;
  }
  return sums;
}

bool owner_is_gone(const StateFile& file, ClaimWord owner) noexcept {
  return owner.slot() >= file.used_slots().size() || !owner.of_generation(file.slot(owner.slot()).generation.load());
}

void free_claims_of_the_gone(const StateFile& file) noexcept {
  for (SharedClaim& claim : file.used_claims()) {
    std::uint64_t owner = claim.owner.load();
    if (owner != 0 && owner_is_gone(file, {owner})) claim.owner.compare_exchange_strong(owner, 0);
  }
}

}  // namespace

std::optional<OwnClaim> place_shared_claim(const StateFile& file, FreeClaims* free, std::size_t slot,
                                           std::uint64_t generation, const ClaimedBlock& what) {
  const ClaimWord word = ClaimWord::of(slot, generation, free->serial++);
  const auto index = take_an_entry(file, free, word.at(ClaimStage::writing));
  if (!index) return std::nullopt;
  SharedClaim& claim = file.claim(*index);
  claim.block.store(what.block);
  claim.bytes.store(what.bytes);
  claim.device.store(static_cast<std::uint64_t>(what.device));
  include(file, *index);
  if (!advance(claim, word, ClaimStage::writing, ClaimStage::pending)) return std::nullopt;  // our slot is another's
  return OwnClaim{*index, word};
}

void settle_shared_claim(const StateFile& file, const OwnClaim& claim) noexcept {
  (void)advance(file.claim(claim.index), claim.word, ClaimStage::pending, ClaimStage::settled);
}

void drop_shared_claim(const StateFile& file, FreeClaims* free, const OwnClaim& claim) {
  SharedClaim& entry = file.claim(claim.index);
  for (const ClaimStage stage : {ClaimStage::settled, ClaimStage::pending}) {
    std::uint64_t expected = claim.word.at(stage).bits;
    if (!entry.owner.compare_exchange_strong(expected, 0)) continue;
    free->given_back.push_back(claim.index);
    return;
  }
}

bool settled_by_another(const StateFile& file, std::uint64_t block, const std::optional<OwnClaim>& except) noexcept {
  const auto claims = file.used_claims();
  for (std::size_t index = 0; index < claims.size(); ++index) {
    if (except && except->index == index) continue;
    if (claims[index].block.load() != block) continue;
    const auto what = read(claims[index], ClaimStage::settled);
    if (what && what->block == block) return true;
  }
  return false;
}

DeviceSums settled_shared_bytes(const StateFile& file) { return sums_of(file, ClaimStage::settled); }

void add_up_shared_claims(const StateFile& file) {
  free_claims_of_the_gone(file);
  auto& raised = file.header().shared;
  bool set = false;
  for (int attempt = 0; attempt < 16 && !set; ++attempt) {  // where others raise it all the time, it stays too high
    DeviceSums before;
    for (std::size_t device = 0; device < before.size(); ++device) before[device] = raised[device].load();
    const DeviceSums sums = sums_of(file, ClaimStage::pending);
    set = true;
    for (std::size_t device = 0; device < before.size(); ++device) {
      set = raised[device].compare_exchange_strong(before[device], sums[device]) && set;
    }
  }
}

bool store_more_shared_claims(StateFile& file) noexcept {
  const std::size_t more = file.header().claims_stored.load() + claims_stored_at_once;
  if (more > shared_claim_count || !file.reserve_claims(more)) return false;
  file.header().claims_stored.store(static_cast<std::uint32_t>(more));
  return true;
}

void clear_shared_claims(const StateFile& file) noexcept {
  free_claims_of_the_gone(file);
  file.header().claims_end.store(0);
}

}  // namespace devshare::host

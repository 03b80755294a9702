// SPDX-License-Identifier: Apache-2.0
#include <devshare/choose.hpp>
#include <devshare/peer.hpp>

namespace devshare {

template <class K>
  requires(std::is_same_v<K, by_key> || detail::HandleKind<K>)
Result<MemoryFor<K>> allocate_for(const Device& device, std::size_t bytes, Placement placement) noexcept {
  if constexpr (std::is_same_v<K, by_key>) {
    return DeviceMemory::allocate(device, bytes, placement);
  } else {
    DEVSHARE_TRY(handle, PhysicalHandle::allocate(device, bytes, placement));
    DEVSHARE_TRY(mapping, Mapping::of(std::move(handle)));
    return mapping;
  }
}
template Result<DeviceMemory> allocate_for<by_key>(const Device&, std::size_t, Placement) noexcept;
template Result<Mapping> allocate_for<v1>(const Device&, std::size_t, Placement) noexcept;
template Result<Mapping> allocate_for<v2>(const Device&, std::size_t, Placement) noexcept;
template Result<Mapping> allocate_for<fabric>(const Device&, std::size_t, Placement) noexcept;

namespace {

// Exports the least memory there is by K and gives it back: what a product refuses, it refuses here (R35).
template <class K>
std::optional<Error> try_export(const Device& device) noexcept {
  auto memory = allocate_for<K>(device, 1);
  if (!memory) return memory.error();
  auto exported = export_for<K>(*std::move(memory));
  if (!exported) return exported.error().error();
  auto closed = (*std::move(exported)).close();
  if (!closed) return closed.error().error();
  if (auto ended = (*std::move(closed)).close(); !ended) return detail::plain_error(ended.error());
  return std::nullopt;
}

std::optional<Error> unreachable(const Device& device, const Device& peer) noexcept {
  if (device == peer) return std::nullopt;
  for (const auto& [from, to] : {std::pair{&device, &peer}, std::pair{&peer, &device}}) {
    const auto reaches = can_access_peer(*from, *to);
    if (!reaches) return reaches.error();
    if (!*reaches) {
      return Error(Errc::peer_access_impossible, Operation::can_access_peer,
                   {.device = from->number(), .peer_device = to->number()});
    }
  }
  return std::nullopt;
}

}  // namespace

Mechanisms importable(const Device& device) noexcept {
  Mechanisms all;
  if (!device.session().alive()) return all;
  const acl::Table& table = device.session().record->table;
  if (table.aclrtIpcMemImportByKey != nullptr && table.aclrtIpcMemClose != nullptr) all.add(Mechanism::by_key);
  const bool maps = table.aclrtReserveMemAddress != nullptr && table.aclrtMapMem != nullptr &&
                    table.aclrtMemSetAccess != nullptr && table.aclrtUnmapMem != nullptr &&
                    table.aclrtReleaseMemAddress != nullptr && table.aclrtFreePhysical != nullptr;
  if (maps && table.aclrtMemImportFromShareableHandle != nullptr) all.add(Mechanism::v1);
  if (maps && table.aclrtMemImportFromShareableHandleV2 != nullptr) {
    all.add(Mechanism::v2);
    all.add(Mechanism::fabric);
  }
  return all;
}

Result<Probe> probe(const Device& device, const Device& peer) noexcept {
  if (!device.session().alive()) return detail::unusable(device.session(), Operation::query_device);
  if (!peer.session().alive()) return detail::unusable(peer.session(), Operation::query_device);
  Probe found;
  const std::optional<Error> apart = unreachable(device, peer);
  const auto judge = [&]<class K>(K) {
    const std::optional<Error> why = apart ? apart : try_export<K>(device);
    if (why) found.refuse(K::mechanism, *why);
  };
  for (const Mechanism each : all_mechanisms) with_mechanism(each, judge);
  return found;
}

Result<Mechanism> choose(Mechanisms works_here, Prefer prefer, Mechanisms importer_can) noexcept {
  if (const auto best = prefer.first_of(works_here & importer_can)) return *best;
  return Error(Errc::mechanism_mismatch, Operation::choose);
}

}  // namespace devshare

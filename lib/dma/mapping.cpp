// SPDX-License-Identifier: Apache-2.0
// Mapping: pieces of a range that the program owns, and their sleep.
#include <devshare/mapping.hpp>

#include "range.hpp"

#include <devshare/diagnostic.hpp>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace devshare {
namespace detail {
namespace {

// Frees what unmap_all() unmapped, the last piece first. What cannot be freed is mapped again, and all before it.
Result<void> free_all(Range& range, std::vector<HandleRecord*> handles, Operation operation) noexcept {
  for (auto handle = handles.begin(); handle != handles.end(); ++handle) {
    auto dropped = (*handle)->drop(*handle);
    if (dropped) continue;
    handles.erase(handles.begin(), handle);
    map_again(range, handles, operation);
    return dropped;
  }
  return {};
}

// New memory for the first of those that sleep.
Result<void> wake_next(Range& range, const Backing& lost, Operation operation) noexcept {
  DEVSHARE_TRY(handle, allocate_handle(range.session, range.device, lost.size, lost.property, lost.host, operation));
  if (auto mapped = map_piece(range, handle, operation); !mapped) {
    (void)drop_or_park(handle);
    return mapped.error();
  }
  return {};
}

// New memory for every piece that sleeps, or none. A piece that cannot be unmapped again stays awake.
Result<void> wake_all(Range& range, Operation operation) noexcept {
  std::size_t awake = 0;
  while (awake < range.released.size()) {
    auto woken = wake_next(range, range.released[awake], operation);
    if (woken) {
      ++awake;
      continue;
    }
    while (awake != 0) {
      auto unmapped = unmap_last_piece(range, operation);
      if (!unmapped) {
        report({DiagnosticEvent::close_failed, unmapped.error(), range.address});
        break;
      }
      (void)drop_or_park(*unmapped);
      --awake;
    }
    range.released.erase(range.released.begin(), range.released.begin() + static_cast<std::ptrdiff_t>(awake));
    return woken.error();
  }
  range.released.clear();
  return {};
}

MappingValue value_of(Range& range) noexcept {
  return {&range, range.address, range.mapped(), range.reserved, range.device};
}

}  // namespace

void MappingPolicy::abandon(const Value& value) noexcept { abandon_range(value.range); }

std::size_t pieces_in(const Range& range) noexcept { return range.pieces.size(); }

Slice piece_of(const Range& range, std::size_t index) noexcept {
  const Piece& piece = range.pieces[index];
  return {piece.offset, piece.handle->size};
}

Result<void> MappingPolicy::close(const Session&, const Value& value) noexcept {
  return end_range(value.range, Operation::unmap_memory);
}

}  // namespace detail

Result<Mapping, Refused<PhysicalHandle>> Mapping::of(PhysicalHandle&& handle) noexcept {
  constexpr Operation operation = Operation::map_memory;
  const detail::Session session = handle.owned().session();
  if (!session.alive()) {
    return Refused<PhysicalHandle>(detail::unusable(session, operation), std::move(handle));
  }
  const std::int32_t device = handle.device().number();
  auto reserved = detail::reserve_range(session, device, handle.physical_size(), operation);
  if (!reserved) return Refused<PhysicalHandle>(reserved.error(), std::move(handle));
  detail::Range* const range = *reserved;
  if (auto mapped = detail::map_piece(*range, handle.owned().value().record, operation); !mapped) {
    const Error error = mapped.error();
    if (auto undone = detail::end_range(range, operation); !undone) {
      detail::report({DiagnosticEvent::close_failed, undone.error(), nullptr});
    }
    return Refused<PhysicalHandle>(error, std::move(handle));
  }
  (void)std::move(handle).release();
  return Mapping(session, detail::value_of(*range));
}

Result<Mapping, Refused<Unmapped>> AddressReservation::map(PhysicalHandle&& handle) && noexcept {
  constexpr Operation operation = Operation::map_memory;
  const auto refuse = [&](const Error& error) {
    return Refused<Unmapped>(error, Unmapped{std::move(*this), std::move(handle)});
  };
  const detail::Session session = owned_.session();
  if (!session.alive()) return refuse(detail::unusable(session, operation));
  if (!handle.owned().session().alive()) return refuse(detail::unusable(handle.owned().session(), operation));
  const detail::ReservationValue& value = owned_.value();
  if (auto mapped = detail::map_piece(*value.range, handle.owned().value().record, operation); !mapped) {
    return refuse(mapped.error());
  }
  (void)std::move(handle).release();
  return Mapping(session, detail::value_of(*owned_.release().range));
}

Result<void, Refused<PhysicalHandle>> Mapping::extend(PhysicalHandle&& handle) & noexcept {
  constexpr Operation operation = Operation::map_memory;
  const auto refuse = [&](const Error& error) { return Refused<PhysicalHandle>(error, std::move(handle)); };
  if (!owned_.session().alive()) return refuse(detail::unusable(owned_.session(), operation));
  if (!handle.owned().session().alive()) return refuse(detail::unusable(handle.owned().session(), operation));
  detail::Range& range = *owned_.value().range;
  if (!range.released.empty()) return refuse(Error(Errc::no_backing, operation, {.device = range.device}));
  if (auto mapped = detail::map_piece(range, handle.owned().value().record, operation); !mapped) {
    return refuse(mapped.error());
  }
  (void)std::move(handle).release();
  owned_.set_value(detail::value_of(range));
  return {};
}

Result<void, Refused<Mapping>> Mapping::close() && noexcept {
  constexpr Operation operation = Operation::unmap_memory;
  const auto refuse = [&](const Error& error) { return Refused<Mapping>(error, std::move(*this)); };
  if (!owned_.session().alive()) {
    if (auto closed = owned_.close(operation); !closed) return refuse(closed.error());
    return {};
  }
  detail::Range* const range = owned_.value().range;
  auto handles = detail::take_apart(range, operation);
  if (!handles) {
    owned_.set_value(detail::value_of(*range));
    return refuse(handles.error());
  }
  (void)owned_.release();
  if (const std::optional<Error> refused = detail::drop_all(*std::move(handles))) return refuse(*refused);
  return {};
}

Result<void> Mapping::check() const noexcept {
  constexpr Operation operation = Operation::use_mapping;
  if (!owned_.session().alive()) return detail::unusable(owned_.session(), operation);
  const detail::Range& range = *owned_.value().range;
  if (range.pieces.empty()) return Error(Errc::no_backing, operation, {.device = range.device});
  return {};
}

Result<std::size_t> Mapping::release_backing() & noexcept {
  constexpr Operation operation = Operation::release_backing;
  if (!owned_.session().alive()) return detail::unusable(owned_.session(), operation);
  detail::Range& range = *owned_.value().range;
  if (range.pieces.empty()) return Error(Errc::no_backing, operation, {.device = range.device});
  const detail::RuntimeRecord& runtime = *owned_.session().record;
  const detail::CurrentDevice current(runtime, range.device);
  const std::size_t bytes = range.end();
  const std::size_t before = detail::free_bytes_of_current_device(runtime);
  auto unmapped = detail::unmap_all(range, operation);
  const Result<void> freed =
      unmapped ? detail::free_all(range, *std::move(unmapped), operation) : Result<void>(unmapped.error());
  owned_.set_value(detail::value_of(range));
  if (!freed) return freed.error();
  const std::size_t after = detail::free_bytes_of_current_device(runtime);
  return after > before ? std::min(after - before, bytes) : 0;
}

Result<void> Mapping::restore() & noexcept {
  constexpr Operation operation = Operation::restore_backing;
  if (!owned_.session().alive()) return detail::unusable(owned_.session(), operation);
  detail::Range& range = *owned_.value().range;
  if (range.released.empty()) return Error(Errc::invalid_argument, operation, {.device = range.device});
  auto woken = detail::wake_all(range, operation);
  owned_.set_value(detail::value_of(range));
  return woken;
}

}  // namespace devshare

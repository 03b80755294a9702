// SPDX-License-Identifier: Apache-2.0
// What holds of every class of the public surface, asked of the compiler: owners move without fail and are never copied
// (B089), values copy for nothing, and no call takes an argument of another kind than its own (B097).
#include "support/catch.hpp"

#include <devshare/devshare.hpp>
#include <devshare/host.hpp>

#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>

using namespace devshare;

// An engine's own block of device memory, which it lets devshare export.
struct EngineBlock {
  DeviceMemory memory;
  DeviceSpan<std::byte> bytes() { return memory.bytes(); }
  Device device() const { return memory.device(); }
};
template <>
inline constexpr bool devshare::is_key_exportable<EngineBlock> = true;

namespace {

using OpenKey = SharedMemoryKey<DeviceMemory, Unrestricted>;

template <class... T>
struct List {};

// Each owns something of the runtime.
using Owners = List<DeviceMemory, PeerAccess, Stream, Event, SharedNotify, ImportedNotify, SharedEvent,
                    ImportedEvent, ImportedMapping, ImportedConstMapping, SharedMemoryKey<>, OpenKey,
                    SharedMemoryKey<UnownedMemory>, SharedMemoryKey<EngineBlock>, Refused<DeviceMemory>,
                    Refused<SharedMemoryKey<>>, Result<DeviceMemory>, Result<SharedMemoryKey<>, Refused<DeviceMemory>>,
                    Result<DeviceMemory, Refused<SharedMemoryKey<>>>, PhysicalHandle, ImportedHandle,
                    AddressReservation, Mapping, HostRegistration, ExportToken<v1>, ExportToken<v2, PhysicalHandle>,
                    ExportToken<fabric, Mapping, Unrestricted>, Unmapped, UnmappedImport, Refused<PhysicalHandle>,
                    Refused<Unmapped>, Refused<Mapping>, Result<Mapping, Refused<PhysicalHandle>>, Lender,
                    Lent<Mapping>, Lent<DeviceMemory>, Borrower, Lease>;

// Each only says something.
using Values =
    List<Error, Detail, Device, DeviceId, MemoryInfo, BarePid, Runtime, Version, Parked, Slice, Placement,
         DevicePtr<std::byte>, DeviceSpan<std::byte>, DeviceSpan<const float>, UnownedMemory, StreamRef, StreamOptions,
         NotifyTicket, ReceivedNotifyTicket, EventTicket, ReceivedEventTicket,
         KeyTicket, Ticket<v2>, TicketBytes, ExporterIdentity, ReceivedTicket, Mechanisms, Prefer, Probe, HostPlacement,
         HostBacking, Diagnostic, DiagnosticHandler, Result<void>, Result<Device>>;

template <class T>
concept Owner = std::is_nothrow_destructible_v<T> && std::is_nothrow_move_constructible_v<T> &&
                std::is_nothrow_move_assignable_v<T> && !std::is_copy_constructible_v<T> &&
                !std::is_copy_assignable_v<T>;

template <class T>
concept Value = std::is_nothrow_destructible_v<T> && std::is_nothrow_copy_constructible_v<T> &&
    std::is_nothrow_move_constructible_v<T> && std::is_nothrow_copy_assignable_v<T>;

template <class... T>
constexpr bool all_own(List<T...>) {
  static_assert((Owner<T> && ...));
  return true;
}
template <class... T>
constexpr bool all_are_values(List<T...>) {
  static_assert((Value<T> && ...));
  return true;
}

}  // namespace

TEST_CASE("B089: no destructor throws, no move fails, and no owner has a copy") {
  STATIC_REQUIRE(all_own(Owners{}));
  STATIC_REQUIRE(all_are_values(Values{}));
  STATIC_REQUIRE(std::is_nothrow_destructible_v<BadResult>);
}

TEST_CASE("an object that exists is valid: nothing that needs the runtime is made without it") {
  STATIC_REQUIRE_FALSE(std::is_default_constructible_v<Device>);
  STATIC_REQUIRE_FALSE(std::is_default_constructible_v<Runtime>);
  STATIC_REQUIRE_FALSE(std::is_default_constructible_v<DeviceMemory>);
  STATIC_REQUIRE_FALSE(std::is_default_constructible_v<SharedMemoryKey<>>);
  STATIC_REQUIRE_FALSE(std::is_default_constructible_v<ImportedMapping>);
  STATIC_REQUIRE_FALSE(std::is_default_constructible_v<PhysicalHandle>);
  STATIC_REQUIRE_FALSE(std::is_default_constructible_v<ImportedHandle>);
  STATIC_REQUIRE_FALSE(std::is_default_constructible_v<AddressReservation>);
  STATIC_REQUIRE_FALSE(std::is_default_constructible_v<Mapping>);
  STATIC_REQUIRE_FALSE(std::is_default_constructible_v<HostRegistration>);
  STATIC_REQUIRE_FALSE(std::is_default_constructible_v<ExportToken<v2>>);
  STATIC_REQUIRE_FALSE(std::is_default_constructible_v<Ticket<v2>>);
  STATIC_REQUIRE_FALSE(std::is_default_constructible_v<ReceivedTicket>);
  STATIC_REQUIRE_FALSE(std::is_default_constructible_v<KeyTicket>);
  STATIC_REQUIRE_FALSE(std::is_default_constructible_v<BarePid>);
  STATIC_REQUIRE_FALSE(std::is_default_constructible_v<UnownedMemory>);
  STATIC_REQUIRE_FALSE(std::is_default_constructible_v<Result<Device>>);
}

// --- B097: one kind of argument for each place --------------------------------------------------------------------

namespace {

// Everything that a caller has in hand, by either path, and might put in the wrong place.
using InHand = List<int, unsigned, std::int64_t, std::size_t, bool, double, void*, std::nullptr_t, const char*,
                    DeviceId, Device, Runtime, BarePid, std::span<const BarePid>, Slice, Placement, std::byte,
                    DevicePtr<std::byte>, DeviceSpan<std::byte>, DeviceSpan<const std::byte>, std::span<std::byte>,
                    std::span<const std::byte>, KeyTicket, TicketBytes, ReceivedTicket, PeerAccess, DeviceMemory,
                    UnownedMemory, EngineBlock, SharedMemoryKey<>, OpenKey, ImportedMapping, PhysicalHandle,
                    ImportedHandle, AddressReservation, Mapping, HostRegistration, ExportToken<v2>, Ticket<v2>,
                    HostPlacement, Populate, AccessMode, Mechanism, Mechanisms, Prefer, v2, Error, Result<Device>,
                    Result<DeviceMemory>, Result<BarePid>, Result<KeyTicket>, Result<PhysicalHandle>, Result<Mapping>>;

template <class T, class... Right>
constexpr bool is_one_of = (std::is_same_v<T, Right> || ...);

// True when `call` can be made with exactly those types of InHand that are named as right, each as an rvalue.
template <class... Right, class Call, class... T>
constexpr bool takes_only_of(Call, List<T...>) {
  return ((std::is_invocable_v<Call, T> == is_one_of<T, Right...>)&&...);
}
template <class... Right, class Call>
constexpr bool takes_only(Call call) {
  return takes_only_of<Right...>(call, InHand{});
}

#define DEVSHARE_CALL(...)                               \
  []<class X>(X && x) requires requires { __VA_ARGS__; } \
  {}
#define DEVSHARE_X std::forward<X>(x)

}  // namespace

// What stands in the other places of a call, always right. Never called, so nowhere defined.
namespace placeholder {
Device device();
Runtime runtime();
SharedMemoryKey<>& key();
OpenKey& open_key();
ExportToken<v2>& token();
ExportToken<v2, Mapping, Unrestricted>& open_token();
PhysicalHandle handle();
AddressReservation range();
Mapping& mapping();
ImportedMapping& import();
ReceivedTicket received();
DeviceSpan<std::byte> on_device();
std::span<std::byte> on_host();
}  // namespace placeholder
using namespace placeholder;

TEST_CASE("B097: a place for a device takes a device and no id, no number and no pid") {
  STATIC_REQUIRE(takes_only<Device>(DEVSHARE_CALL(DeviceMemory::allocate(DEVSHARE_X, std::size_t{64}))));
  STATIC_REQUIRE(takes_only<Device>(DEVSHARE_CALL(UnownedMemory::promise_outlives(DEVSHARE_X, on_device()))));
  STATIC_REQUIRE(takes_only<Device>(DEVSHARE_CALL(ImportedMapping::open(received(), DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<Device>(DEVSHARE_CALL(ImportedConstMapping::open(received(), DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<Device>(DEVSHARE_CALL(PeerAccess::both_ways(DEVSHARE_X, device()))));
  STATIC_REQUIRE(takes_only<Device>(DEVSHARE_CALL(PeerAccess::both_ways(device(), DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<Device>(DEVSHARE_CALL(PeerAccess::half(DEVSHARE_X, device()))));
  STATIC_REQUIRE(takes_only<Device>(DEVSHARE_CALL(PeerAccess::half(device(), DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<Device>(DEVSHARE_CALL(can_access_peer(DEVSHARE_X, device()))));
  STATIC_REQUIRE(takes_only<Device>(DEVSHARE_CALL(can_access_peer(device(), DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<Device>(DEVSHARE_CALL(copy_to_device(DEVSHARE_X, on_device(), on_host()))));
  STATIC_REQUIRE(takes_only<Device>(DEVSHARE_CALL(copy_to_host(DEVSHARE_X, on_host(), on_device()))));
  STATIC_REQUIRE(takes_only<Device>(DEVSHARE_CALL(copy_on_device(DEVSHARE_X, on_device(), on_device()))));
  STATIC_REQUIRE(takes_only<Device>(DEVSHARE_CALL(devshare::fill(DEVSHARE_X, on_device(), std::byte{1}))));
  STATIC_REQUIRE(takes_only<Device>(DEVSHARE_CALL(PhysicalHandle::allocate(DEVSHARE_X, std::size_t{64}))));
  STATIC_REQUIRE(takes_only<Device>(DEVSHARE_CALL(PhysicalHandle::allocate_on_host(DEVSHARE_X, std::size_t{64}))));
  STATIC_REQUIRE(takes_only<Device>(DEVSHARE_CALL(PhysicalHandle::retain_from(DEVSHARE_X, on_device()))));
  STATIC_REQUIRE(takes_only<Device>(DEVSHARE_CALL(AddressReservation::reserve(DEVSHARE_X, std::size_t{64}))));
  STATIC_REQUIRE(takes_only<Device>(DEVSHARE_CALL(ImportedHandle::open(received(), DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<Device>(DEVSHARE_CALL(HostRegistration::of(DEVSHARE_X, on_host()))));
  STATIC_REQUIRE(takes_only<Device>(DEVSHARE_CALL(probe(DEVSHARE_X, device()))));
  STATIC_REQUIRE(takes_only<Device>(DEVSHARE_CALL(probe(device(), DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<Device>(DEVSHARE_CALL(importable(DEVSHARE_X))));
}

TEST_CASE("B097: only a DeviceId names a device") {
  STATIC_REQUIRE(takes_only<DeviceId>(DEVSHARE_CALL(runtime().device(DEVSHARE_X))));
}

TEST_CASE("B097: only a BarePid, or a list of them, names a process, and only a slice stands beside it") {
  STATIC_REQUIRE(takes_only<BarePid, std::span<const BarePid>>(DEVSHARE_CALL(key().admit(DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<BarePid, std::span<const BarePid>>(DEVSHARE_CALL(key().admit(DEVSHARE_X, Slice{}))));
  STATIC_REQUIRE(takes_only<Slice>(DEVSHARE_CALL(key().admit(BarePid::from_peer_message(1), DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<Slice>(DEVSHARE_CALL(open_key().ticket(DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<>(DEVSHARE_CALL(open_key().admit(DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<>(DEVSHARE_CALL(key().ticket(DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<AccessMode>(DEVSHARE_CALL(key().admit(BarePid::from_peer_message(1), {}, DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<BarePid, std::span<const BarePid>>(DEVSHARE_CALL(token().admit(DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<Slice>(DEVSHARE_CALL(token().admit(BarePid::from_peer_message(1), DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<AccessMode>(DEVSHARE_CALL(token().admit(BarePid::from_peer_message(1), {}, DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<Slice>(DEVSHARE_CALL(open_token().ticket(DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<>(DEVSHARE_CALL(open_token().admit(DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<>(DEVSHARE_CALL(token().ticket(DEVSHARE_X))));
}

TEST_CASE("B097: each step of the handle path takes what the step before it gave, and nothing else") {
  STATIC_REQUIRE(takes_only<PhysicalHandle>(DEVSHARE_CALL(Mapping::of(DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<PhysicalHandle, ImportedHandle>(DEVSHARE_CALL(range().map(DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<PhysicalHandle>(DEVSHARE_CALL(mapping().extend(DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<ImportedHandle>(DEVSHARE_CALL(import().extend(DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<PhysicalHandle, Mapping>(DEVSHARE_CALL(export_handle<v1>(DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<PhysicalHandle, Mapping>(DEVSHARE_CALL(export_handle<v2>(DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<PhysicalHandle, Mapping>(DEVSHARE_CALL(export_handle_unrestricted<fabric>(DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<DeviceMemory>(DEVSHARE_CALL(rehouse(DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<DeviceSpan<std::byte>>(DEVSHARE_CALL(PhysicalHandle::retain_from(device(), DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<std::span<std::byte>>(DEVSHARE_CALL(HostRegistration::of(device(), DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<HostPlacement>(
      DEVSHARE_CALL(PhysicalHandle::allocate_on_host(device(), std::size_t{64}, DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<Placement>(DEVSHARE_CALL(PhysicalHandle::allocate(device(), std::size_t{64}, DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<Mechanisms>(DEVSHARE_CALL(choose(DEVSHARE_X, Prefer{}, Mechanisms{}))));
  STATIC_REQUIRE(takes_only<Prefer>(DEVSHARE_CALL(choose(Mechanisms{}, DEVSHARE_X, Mechanisms{}))));
  STATIC_REQUIRE(takes_only<Mechanisms>(DEVSHARE_CALL(choose(Mechanisms{}, Prefer{}, DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<Mechanism>(DEVSHARE_CALL(with_mechanism(DEVSHARE_X, [](auto) {}))));
}

TEST_CASE("B097: what can be exported is memory that this process owns, or promises to keep") {
  STATIC_REQUIRE(takes_only<DeviceMemory, UnownedMemory, EngineBlock>(DEVSHARE_CALL(export_key(DEVSHARE_X))));
  STATIC_REQUIRE(
      takes_only<DeviceMemory, UnownedMemory, EngineBlock>(DEVSHARE_CALL(export_key_unrestricted(DEVSHARE_X))));
  STATIC_REQUIRE_FALSE(std::is_invocable_v<decltype(DEVSHARE_CALL(export_key(DEVSHARE_X))), DeviceMemory&>);
  STATIC_REQUIRE_FALSE(std::is_invocable_v<decltype(DEVSHARE_CALL(export_key(DEVSHARE_X))), const DeviceMemory>);
}

TEST_CASE("B097: what can be imported is a received ticket") {
  STATIC_REQUIRE(takes_only<ReceivedTicket>(DEVSHARE_CALL(ImportedMapping::open(DEVSHARE_X, device()))));
  STATIC_REQUIRE(takes_only<ReceivedTicket>(DEVSHARE_CALL(ImportedConstMapping::open(DEVSHARE_X, device()))));
  STATIC_REQUIRE(
      takes_only<PeerAccess, Populate>(DEVSHARE_CALL(ImportedMapping::open(received(), device(), DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<ReceivedTicket>(DEVSHARE_CALL(ImportedHandle::open(DEVSHARE_X, device()))));
  STATIC_REQUIRE(takes_only<Populate>(DEVSHARE_CALL(ImportedHandle::open(received(), device(), DEVSHARE_X))));
}

TEST_CASE("B097: a ticket is decoded from host bytes and from nothing that this process issued") {
  STATIC_REQUIRE(
      takes_only<std::span<std::byte>, std::span<const std::byte>>(DEVSHARE_CALL(ReceivedTicket::decode(DEVSHARE_X))));
}

TEST_CASE("B097: a size is a number and neither a device, a pid nor a slice") {
  STATIC_REQUIRE(takes_only<int, unsigned, std::int64_t, std::size_t, bool, double>(
      DEVSHARE_CALL(DeviceMemory::allocate(device(), DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<int, unsigned, std::int64_t, std::size_t, bool, double>(
      DEVSHARE_CALL(PhysicalHandle::allocate(device(), DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<int, unsigned, std::int64_t, std::size_t, bool, double>(
      DEVSHARE_CALL(AddressReservation::reserve(device(), DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<Placement>(DEVSHARE_CALL(DeviceMemory::allocate(device(), std::size_t{64}, DEVSHARE_X))));
}

TEST_CASE("B097: copies take device memory and host memory each in its place, and write nothing that is read-only") {
  STATIC_REQUIRE(takes_only<DeviceSpan<std::byte>>(DEVSHARE_CALL(copy_to_device(device(), DEVSHARE_X, on_host()))));
  STATIC_REQUIRE(takes_only<std::span<std::byte>, std::span<const std::byte>>(
      DEVSHARE_CALL(copy_to_device(device(), on_device(), DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<std::span<std::byte>>(DEVSHARE_CALL(copy_to_host(device(), DEVSHARE_X, on_device()))));
  STATIC_REQUIRE(takes_only<DeviceSpan<std::byte>, DeviceSpan<const std::byte>>(
      DEVSHARE_CALL(copy_to_host(device(), on_host(), DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<DeviceSpan<std::byte>>(DEVSHARE_CALL(copy_on_device(device(), DEVSHARE_X, on_device()))));
  STATIC_REQUIRE(takes_only<DeviceSpan<std::byte>, DeviceSpan<const std::byte>>(
      DEVSHARE_CALL(copy_on_device(device(), on_device(), DEVSHARE_X))));
  STATIC_REQUIRE(takes_only<DeviceSpan<std::byte>>(DEVSHARE_CALL(devshare::fill(device(), DEVSHARE_X, std::byte{1}))));
  STATIC_REQUIRE(takes_only<std::byte>(DEVSHARE_CALL(devshare::fill(device(), on_device(), DEVSHARE_X))));
}

TEST_CASE("B097: the list of wrong arguments is not empty, and the right ones are seen") {
  STATIC_REQUIRE_FALSE(takes_only<>(DEVSHARE_CALL(runtime().device(DEVSHARE_X))));
  STATIC_REQUIRE_FALSE(takes_only<DeviceId, int>(DEVSHARE_CALL(runtime().device(DEVSHARE_X))));
}

// SPDX-License-Identifier: Apache-2.0
// DeviceMemory: a block of device memory this process owns. UnownedMemory: one that somebody else keeps alive.
#pragma once

#include <devshare/address.hpp>
#include <devshare/detail/owned.hpp>
#include <devshare/device.hpp>
#include <devshare/host_pages.hpp>

#include <cstddef>

namespace devshare {

// How a block is laid out. The default suits every product but 310P, where memory that is to be shared across devices
// needs `peer_to_peer` (R43). The first two are of the card; the others of a machine that plays one (host_pages.hpp).
struct Placement {
  enum class Pages : std::uint8_t { huge_first, huge_only, normal_only, huge_1g_only };
  Pages pages = Pages::huge_first;
  bool peer_to_peer = false;
  HostPages host_pages = HostPages::normal;
  Populate populate = Populate::when_touched;
};

class DeviceMemory;

namespace detail {

struct MemoryValue {
  void* address = nullptr;
  std::size_t size = 0;
  std::int32_t device = -1;
};

// What the runtime refused, as a Result that is made where it goes.
DEVSHARE_API Result<DeviceMemory> allocation_failed(const Device& device, std::size_t bytes, acl::aclError code) noexcept;

// The same calls on a device that is not current on this thread, or no longer there, or with something to ask of the
// machine: out of line.
[[gnu::cold]] DEVSHARE_API Result<DeviceMemory> allocate_elsewhere(Device device, std::size_t bytes,
                                                                   Placement placement) noexcept;
[[gnu::cold]] DEVSHARE_API Result<void> free_elsewhere(Session session, MemoryValue value) noexcept;

struct MemoryPolicy {
  using Value = MemoryValue;
  static void abandon(const Value&) noexcept {}
  static const void* identity(const Value& value) noexcept { return value.address; }
  DEVSHARE_INLINE static Result<void> close(const Session& session, const Value& value) noexcept {
    const RuntimeRecord& record = *session.record;
    if (!is_current(record, value.device)) [[unlikely]] return free_elsewhere(session, value);
    const acl::aclError code = record.table.aclrtFree(value.address);
    if (code == 0) [[likely]] return {};
    return refusal(record, Operation::free_memory, acl::Entry::aclrtFree, code, {.device = value.device});
  }
};

constexpr HostWish host_wish_of(Placement placement) noexcept { return {placement.host_pages, placement.populate}; }

// The vendor's policy number of a placement.
constexpr acl::aclrtMemMallocPolicy malloc_policy_of(Placement placement) noexcept {
  const int pages = static_cast<int>(placement.pages);
  if (placement.pages == Placement::Pages::huge_1g_only) {
    return placement.peer_to_peer ? acl::malloc_policy::huge_1g_only_p2p : acl::malloc_policy::huge_1g_only;
  }
  return (placement.peer_to_peer ? acl::malloc_policy::huge_first_p2p : acl::malloc_policy::huge_first) + pages;
}

}  // namespace detail

// A block of aclrtMalloc memory, freed when it ends. Movable, not copyable. One thread at a time; different blocks from
// any threads. Moved from, it is empty: bytes() is the empty span and close() returns `closed`.
class DEVSHARE_CONSUMABLE [[nodiscard("the memory is freed when this object ends")]] DeviceMemory {
 public:
  // `bytes` > 0. Fresh memory of the host runtime is zero; the vendor's holds whatever was there.
  // Errors: invalid_argument, out_of_memory, fd_limit, address_space_exhausted, no_space, runtime_gone.
  // ACL: aclrtMalloc.
  DEVSHARE_INLINE static Result<DeviceMemory> allocate(const Device& device, std::size_t bytes,
                                                       Placement placement = {}) noexcept {
    const detail::RuntimeRecord& record = *device.session().record;
    if (detail::host_wish_of(placement).anything() || !device.session().current() ||
        !detail::is_current(record, device.number())) [[unlikely]] {
      return detail::allocate_elsewhere(device, bytes, placement);
    }
    void* address = nullptr;
    const acl::aclError code = record.table.aclrtMalloc(&address, bytes, detail::malloc_policy_of(placement));
    if (code == 0) [[likely]] return DeviceMemory(device.session(), {address, bytes, device.number()});
    return detail::allocation_failed(device, bytes, code);
  }

  DEVSHARE_READS DeviceSpan<std::byte> bytes() & noexcept DEVSHARE_LIFETIMEBOUND { return span<std::byte>(); }
  DEVSHARE_READS DeviceSpan<const std::byte> bytes() const& noexcept DEVSHARE_LIFETIMEBOUND { return span<const std::byte>(); }
  DeviceSpan<std::byte> bytes() && = delete;  // the memory ends with the temporary: keep it in a named object

  DEVSHARE_READS std::size_t size() const noexcept { return owned_.holds() ? owned_.value().size : 0; }
  // Where the memory is. Only of an object that was not moved from.
  DEVSHARE_READS Device device() const noexcept { return detail::device_of(owned_.session(), owned_.value().device); }

  // The pages of the machine that it is in, where the runtime keeps it in the machine's memory.
  DEVSHARE_READS HostBacking backing() const noexcept {
    if (!owned_.holds()) return {};
    return detail::backing_at(owned_.session(), owned_.value().address, owned_.value().size);
  }

  // Frees the memory. Refused, it comes back inside the error.
  // Errors: in_use (a stream uses it, on the host runtime), closed, forked, runtime_gone, refused. ACL: aclrtFree.
  DEVSHARE_INLINE DEVSHARE_CONSUMES Result<void, Refused<DeviceMemory>> close() && noexcept {
    return detail::close_or_give_back(*this, owned_, Operation::free_memory);
  }
  void close() & = delete;       // write std::move(memory).close(): it ends the memory
  void close() const& = delete;  // const, or still inside a Result: make a named object of it first, then close that

  // For the library's own headers.
  DEVSHARE_READS bool holds() const noexcept { return owned_.holds(); }

 private:
  friend Result<DeviceMemory> detail::allocate_elsewhere(Device, std::size_t, Placement) noexcept;
  DeviceMemory(const detail::Session& session, const detail::MemoryValue& value) noexcept : owned_(session, value) {}

  template <class T>
  DeviceSpan<T> span() const noexcept {
    if (!owned_.holds()) return {};
    return {DevicePtr<T>::from_address(owned_.value().address), owned_.value().size};
  }

  detail::Owned<detail::MemoryPolicy> owned_;
};

// Memory of aclrtMalloc that this object does not own: the caller promises that the block outlives whatever is made
// from it. A value. Prefer to opt the engine's own block type in (is_key_exportable): then ownership keeps it alive.
class UnownedMemory {
 public:
  // `block` is a whole allocation: its start and its size.
  static UnownedMemory promise_outlives(const Device& device, DeviceSpan<std::byte> block) noexcept {
    return UnownedMemory(device, block);
  }

  DeviceSpan<std::byte> bytes() const noexcept { return block_; }
  std::size_t size() const noexcept { return block_.size(); }
  const Device& device() const noexcept DEVSHARE_LIFETIMEBOUND { return device_; }

 private:
  UnownedMemory(const Device& device, DeviceSpan<std::byte> block) noexcept : device_(device), block_(block) {}

  Device device_;
  DeviceSpan<std::byte> block_;
};

}  // namespace devshare

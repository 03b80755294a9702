// SPDX-License-Identifier: Apache-2.0
// PhysicalHandle: memory of a device that has no address yet. Mapping gives it one, export_handle shares it.
#pragma once

#include <devshare/address.hpp>
#include <devshare/detail/owned.hpp>
#include <devshare/device.hpp>
#include <devshare/host_pages.hpp>
#include <devshare/memory.hpp>

#include <cstddef>
#include <cstdint>

namespace devshare {

namespace detail {

// A live handle of the process, in the library: its size, and what it was exported as.
struct HandleRecord;
struct PhysicalValue {
  HandleRecord* record = nullptr;
  std::size_t size = 0;           // as asked for
  std::size_t physical_size = 0;  // whole pages
  std::int32_t device = -1;
};
struct PhysicalPolicy {
  using Value = PhysicalValue;
  DEVSHARE_API static void abandon(const Value& value) noexcept;
  DEVSHARE_API static const void* identity(const Value& value) noexcept;
  DEVSHARE_API static Result<void> close(const Session& session, const Value& value) noexcept;
  DEVSHARE_API static void park(const Value& value, const Error& error) noexcept;
};

// What the runtime says of the pages of a handle; unknown in a session that is over.
DEVSHARE_API HostBacking backing_of(const Session& session, const PhysicalValue& value) noexcept;

}  // namespace detail

// Host memory that devices reach by DMA: any of the host's, or of one NUMA node.
struct HostPlacement {
  static constexpr std::int32_t any_node = -1;
  std::int32_t numa_node = any_node;
  bool huge_pages = true;  // as the vendor's runtime means it; the host runtime has `host_pages`
  HostPages host_pages = HostPages::normal;
  Populate populate = Populate::when_touched;
};

// One reference to physical memory, freed when it ends; the memory goes with the last one, in whatever process.
// Movable, not copyable. One thread at a time; different handles from any threads. Moved from, it is empty.
class DEVSHARE_CONSUMABLE [[nodiscard("the memory is freed when this object ends")]] PhysicalHandle {
 public:
  // `bytes` > 0, rounded up to the granularity of the placement (2 MiB, or 1 GiB): both sizes are kept.
  // Errors: invalid_argument, out_of_memory, fd_limit, no_space, unsupported_by_runtime (no pages of 1 GiB, or a
  // runtime without handles), no_device_context, runtime_gone.
  // ACL: aclrtMemGetAllocationGranularity, aclrtMallocPhysical.
  DEVSHARE_API static Result<PhysicalHandle> allocate(const Device& device, std::size_t bytes,
                                                      Placement placement = {}) noexcept;
  // The same in the memory of the host, for use by `device`. Errors as above.
  DEVSHARE_API static Result<PhysicalHandle> allocate_on_host(const Device& device, std::size_t bytes,
                                                              HostPlacement placement = {}) noexcept;

  // A reference of our own to memory that somebody else mapped: an engine's allocator. `mapped` begins where aclrtMapMem
  // was told to and ends in the last page of what it mapped; the engine goes on owning its reference.
  // Errors: invalid_argument (not the start of a mapping, or memory of another device), out_of_range (another size than
  // was mapped), unsupported_by_runtime, runtime_gone.
  // ACL: aclrtMemRetainAllocationHandle, aclrtMemGetAllocationPropertiesFromHandle, and aclrtMemGetAddressRange where
  // the runtime has it.
  DEVSHARE_API static Result<PhysicalHandle> retain_from(const Device& device, DeviceSpan<std::byte> mapped) noexcept;
  static void retain_from(const Device&, DeviceSpan<const std::byte>) = delete;  // retained memory may be written

  DEVSHARE_READS std::size_t size() const noexcept { return owned_.holds() ? owned_.value().size : 0; }
  DEVSHARE_READS std::size_t physical_size() const noexcept {
    return owned_.holds() ? owned_.value().physical_size : 0;
  }
  // Where the memory is, or for host memory which device it was allocated for. Only of one that was not moved from.
  DEVSHARE_READS Device device() const noexcept { return detail::device_of(owned_.session(), owned_.value().device); }

  // The pages of the machine that it is in, where the runtime keeps it in the machine's memory.
  DEVSHARE_READS HostBacking backing() const noexcept {
    return owned_.holds() ? detail::backing_of(owned_.session(), owned_.value()) : HostBacking{};
  }

  // Gives the reference back. Refused, the handle comes back. Errors: closed, forked, runtime_gone, refused.
  // ACL: aclrtFreePhysical.
  DEVSHARE_API DEVSHARE_CONSUMES Result<void, Refused<PhysicalHandle>> close() && noexcept;
  void close() & = delete;       // write std::move(handle).close(): it ends the reference
  void close() const& = delete;  // const, or still inside a Result: make a named object of it first, then close that

  // For the library's own headers.
  DEVSHARE_READS bool holds() const noexcept { return owned_.holds(); }
  DEVSHARE_READS const detail::Owned<detail::PhysicalPolicy>& owned() const noexcept DEVSHARE_LIFETIMEBOUND {
    return owned_;
  }
  DEVSHARE_CONSUMES detail::PhysicalValue release() && noexcept { return owned_.release(); }
  PhysicalHandle(const detail::Session& session, const detail::PhysicalValue& value) noexcept
      : owned_(session, value) {}

 private:
  detail::Owned<detail::PhysicalPolicy> owned_;
};

}  // namespace devshare

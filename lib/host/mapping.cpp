// SPDX-License-Identifier: Apache-2.0
// aclrtMapMem, aclrtMemMapNoAccess and aclrtUnmapMem: pieces of a reservation. A piece is a block like any other, so
// copies and views find it; its bytes are those of its physical memory, of which it is one count.
#include "access_bits.hpp"
#include "block_lifetime.hpp"
#include "block_record.hpp"
#include "calls.hpp"
#include "device.hpp"
#include "failure.hpp"
#include "machine_pages.hpp"
#include "mapping_limit.hpp"
#include "profile.hpp"
#include "reservation.hpp"
#include "window.hpp"

#include <fmt/format.h>

#include <mutex>
#include <utility>

namespace devshare::host {
namespace {

namespace code = acl::code;

acl::aclError refuse_null(const char* what) {
  return refuse(code::invalid_param, Reason::bad_argument, fmt::format("{} is null", what));
}

const char* words_of(HandleOrigin origin) noexcept {
  switch (origin) {
    case HandleOrigin::allocated:
      return "handles of aclrtMallocPhysical";
    case HandleOrigin::imported_v1:
      return "handles of aclrtMemImportFromShareableHandle";
    case HandleOrigin::imported_v2:
      return "handles of aclrtMemImportFromShareableHandleV2";
  }
  return "handles of another kind";
}

acl::aclError check_unmapped(std::uintptr_t address, std::uint64_t size) {
  for (std::uint64_t at = 0; at < size; at += window_step(address + at)) {
    if (window_word(address + at) == 0) continue;
    return refuse(code::rt_drv_internal, Reason::already_mapped,
                  fmt::format("something is mapped at {:#x} already: aclrtUnmapMem first", address + at));
  }
  return 0;
}

// R29. The document speaks of device and origin, the driver looks at the device.
acl::aclError check_mixing(const Reservation& in, const PhysicalMemory& memory) {
  if (in.pieces == 0) return 0;
  if (in.device != memory.local_device) {
    return refuse(code::rt_drv_internal,
                  {.reason = Reason::mixed_memory, .device = memory.local_device, .peer_device = in.device},
                  fmt::format("the reservation at {:#x} holds memory of {}, this is of {}: one reservation, one device "
                              "(R29)",
                              in.base, in.device < 0 ? "the host" : fmt::format("device {}", in.device),
                              memory.local_device < 0 ? "the host" : fmt::format("device {}", memory.local_device)));
  }
  if (in.origin == memory.origin || profile().mixed_origins_allowed) return 0;
  return refuse(code::rt_drv_internal, Reason::mixed_memory,
                fmt::format("the reservation at {:#x} holds {}, this is of {}: one reservation, one origin (R29). "
                            "DEVSHARE_HOST_MIXING=device_only does what the driver does",
                            in.base, words_of(in.origin), words_of(memory.origin)));
}

acl::aclError check_place(Reservations& all, std::uintptr_t address, const PhysicalMemory& memory, Reservation** in) {
  if (address % memory.page_size != 0) {
    return refuse(
        code::rt_drv_internal, Reason::bad_argument,
        fmt::format("virPtr {:#x} is no multiple of the memory's pages of {} bytes", address, memory.page_size));
  }
  *in = all.with(address);
  if (*in == nullptr || !(*in)->holds(address, memory.size)) {
    return refuse(code::rt_drv_internal, Reason::not_reserved,
                  fmt::format("{} bytes at {:#x} are not inside one reservation of aclrtReserveMemAddress", memory.size,
                              address));
  }
  if (const acl::aclError refused = check_unmapped(address, memory.size)) return refused;
  return check_mixing(**in, memory);
}

// Mapping gives access to the memory's own device; any other, the importer's included, waits for aclrtMemSetAccess.
acl::aclError place(Reservation& in, std::uintptr_t address, const Physical& memory, bool asked) {
  const bool accessible = asked && (memory->in_host_memory() || memory->device == memory->local_device);
  PlacedBlock piece{.address = address,
                    .size = memory->size,
                    .backed = memory->size,
                    .page_size = memory->page_size,
                    .device = memory->device,
                    .local_device = memory->local_device,
                    .read_only = memory->read_only,
                    .p2p = memory->p2p,
                    .sealed = memory->sealed,
                    .accessible = accessible,
                    .page_bytes = memory->page_bytes,
                    .populate = memory->populate,
                    .access = accessible ? access_bit(memory->local_device) : 0,
                    .descriptor = memory->descriptor.get(),
                    .memory = memory,
                    .alias = &in.alias};
  if (memory->in_host_memory()) {  // the processor may touch it, and its own address is its view
    if (accessible) {
      if (const int error =
              open_window(address, memory->size, piece.descriptor, !memory->read_only, memory->populate)) {
        return refuse_mapping(memory->size, error);
      }
    }
    piece.shown = accessible;
    piece.view = reinterpret_cast<std::byte*>(address);
    piece.populated = accessible && memory->populate && all_resident(piece.view, memory->size);
  }
  const acl::aclError refused = place_block(std::move(piece));
  if (refused != 0 && memory->in_host_memory() && accessible) shut_window(address, memory->size);
  return refused;
}

acl::aclError map(void* address, std::size_t size, std::size_t offset, acl::aclrtDrvMemHandle handle,
                  std::uint64_t flags, bool accessible) {
  if (address == nullptr) return refuse_null("virPtr");
  if (handle == nullptr) return refuse_null("handle");
  if (flags != 0) return refuse(code::invalid_param, Reason::bad_argument, fmt::format("flags is {}, not 0", flags));
  if (offset != 0) {
    return refuse(code::rt_param_invalid, Reason::bad_argument,
                  fmt::format("offset is {}: memory is mapped whole (R36)", offset));
  }
  DeviceNumber device;
  if (const acl::aclError refused = current_device(&device)) return refused;
  Reservations& all = reservations();
  const Physical memory = hold_for_mapping(handle);
  if (memory == nullptr) return refuse_handle(handle);
  acl::aclError refused = 0;
  {
    const std::lock_guard lock(all.mutex);
    Reservation* in = nullptr;
    if (size != memory->size) {
      refused =
          refuse(code::rt_param_invalid, {.reason = Reason::out_of_bounds, .needed = size, .available = memory->size},
                 fmt::format("size is {} and the memory has {} bytes: it is mapped whole (R36)", size, memory->size));
    } else {
      refused = check_place(all, reinterpret_cast<std::uintptr_t>(address), *memory, &in);
    }
    if (refused == 0) refused = place(*in, reinterpret_cast<std::uintptr_t>(address), memory, accessible);
    if (refused == 0) {
      if (in->pieces++ == 0) {
        in->origin = memory->origin;
        in->device = memory->local_device;
      }
      ++all.mappings;
      return 0;
    }
  }
  drop_from_mapping(memory);
  return refused;
}

}  // namespace

acl::aclError end_piece(Reservations& all, Reservation& in, std::uintptr_t address, Physical* last) {
  bool shown = false;
  std::uint64_t size = 0;
  {
    const PinnedBlock piece(reinterpret_cast<const void*>(address));
    if (piece && piece.origin() == Origin::mapped) {
      *last = piece.memory();
      size = piece.backed();
      shown = piece.record()->shown;
    }
  }
  switch (remove_block(address, Origin::mapped)) {
    case Removed::in_use:
      return refuse(code::rt_drv_internal, Reason::in_use,
                    fmt::format("a call is using the memory at {:#x}: unmap it when that has ended (R5)", address));
    case Removed::no_such_block:
      return refuse(
          code::rt_drv_internal, Reason::not_reserved,
          fmt::format("nothing is mapped at {:#x}: unmapped already, or not the address that aclrtMapMem took "
                      "(R38)",
                      address));
    case Removed::yes:
      break;
  }
  if (shown) shut_window(address, size);
  --in.pieces;
  --all.mappings;
  drop_from_mapping(*last);
  return 0;
}

namespace calls {

aclError aclrtMapMem(void* virPtr, std::size_t size, std::size_t offset, aclrtDrvMemHandle handle,
                     std::uint64_t flags) {
  return map(virPtr, size, offset, handle, flags, true);
}

aclError aclrtMemMapNoAccess(void* virPtr, std::size_t size, std::size_t offset, aclrtDrvMemHandle handle,
                             std::uint64_t flags) {
  return map(virPtr, size, offset, handle, flags, false);
}

aclError aclrtUnmapMem(void* virPtr) {
  if (virPtr == nullptr) return refuse_null("virPtr");
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  Reservations& all = reservations();
  Physical last;  // dropped after the lock: the end of a memory takes its time
  const std::lock_guard lock(all.mutex);
  const auto address = reinterpret_cast<std::uintptr_t>(virPtr);
  Reservation* const in = all.with(address);
  if (in == nullptr) {
    return refuse(code::rt_drv_internal, Reason::not_reserved,
                  fmt::format("{} is in no reservation of aclrtReserveMemAddress", virPtr));
  }
  return end_piece(all, *in, address, &last);
}

}  // namespace calls
}  // namespace devshare::host

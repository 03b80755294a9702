// SPDX-License-Identifier: Apache-2.0
#include "copy_ends.hpp"

#include "block_bytes.hpp"
#include "bulk_copy.hpp"
#include "copy_parts.hpp"
#include "device.hpp"
#include "failure.hpp"
#include "physical.hpp"
#include "pieces.hpp"
#include "profile.hpp"
#include "window.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace devshare::host {
namespace {

namespace kind = acl::memcpy_kind;
namespace code = acl::code;

std::uintptr_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

[[gnu::cold]] acl::aclError out_of_bounds(const Block& block, std::uint64_t offset, std::uint64_t count) {
  const std::uint64_t left = offset < block.size ? block.size - offset : 0;
  return refuse(code::rt_drv_internal, {.reason = Reason::out_of_bounds, .needed = count, .available = left},
                fmt::format("{} bytes from offset {} leave the block at {:#x}, which has {} bytes", count, offset,
                            block.base, block.size));
}

[[gnu::cold]] acl::aclError nothing_there(const void* address) {
  return refuse(code::rt_drv_internal, Reason::not_device_memory,
                fmt::format("{} is a device address, and nothing of this process is there: freed, closed, or a "
                            "pointer of another process (R62)",
                            address));
}

[[gnu::cold]] acl::aclError registered_memory(const void* address) {
  return refuse(code::rt_drv_internal, Reason::not_device_memory,
                fmt::format("{} is the device's address of registered host memory: kernels use it, a copy takes the "
                            "host's own address",
                            address));
}

[[gnu::cold]] acl::aclError exporter_gone(const Block& block) {
  return refuse(code::rt_drv_internal, {.reason = Reason::exporter_gone, .device = block.device},
                "the exporter of this memory closed its key, freed it, or ended (R20)");
}

[[gnu::cold]] acl::aclError read_only() {
  return refuse(code::rt_drv_internal, Reason::read_only, "this memory was imported for reading");
}

[[gnu::cold]] acl::aclError no_access(const Block& block) {
  return refuse(code::rt_drv_internal, Reason::no_access,
                fmt::format("the memory at {:#x} was mapped without access: aclrtMemSetAccess gives it", block.base));
}

acl::aclError check_accessible(const Block& block) {
  return block.accessible.load(std::memory_order_acquire) ? acl::code::success : no_access(block);
}

acl::aclError check_peer_access(std::int32_t from, std::int32_t to) {
  if (from == to || peer_access_effective(from, to)) return 0;
  return refuse(code::rt_drv_internal, {.reason = Reason::peer_access_missing, .device = from, .peer_device = to},
                fmt::format("devices {} and {} have no access to each other: aclrtDeviceEnablePeerAccess on both (R45)",
                            from, to));
}

acl::aclError refuse_afar(std::string_view what) {
  return refuse(code::rt_feature_not_support, Reason::cross_device_copy,
                fmt::format("memory imported from another device: {} (R42). Kernels may use it, and so may a copy to "
                            "or from a third device; DEVSHARE_HOST_CROSS_DEVICE_COPY=allow does what some cards do",
                            what));
}

// What blocking copies may not do with memory by handle. The documents leave a copy between two devices of a process to
// the asynchronous call; the driver has no synchronous copy inside one device for imported memory.
acl::aclError check_mapped(const CopyEnd& to, const CopyEnd& from) {
  if ((!to.mapped() && !from.mapped()) || profile().cross_device_copy_allowed) return 0;
  if (to.block.local_device() != from.block.local_device()) {
    return refuse(code::rt_feature_not_support,
                  {.reason = Reason::cross_device_copy,
                   .device = from.block.local_device(),
                   .peer_device = to.block.local_device()},
                  "mapped memory is copied to another device by aclrtMemcpyAsync only. "
                  "DEVSHARE_HOST_CROSS_DEVICE_COPY=allow does what some cards do");
  }
  const auto imported = [](const CopyEnd& end) {
    return end.mapped() && end.block.memory()->origin != HandleOrigin::allocated;
  };
  if (profile().product == Product::p950 || (!imported(to) && !imported(from))) return 0;
  return refuse(code::rt_feature_not_support, Reason::cross_device_copy,
                "no synchronous copy inside a device for memory that was imported by handle: copy by way of the host. "
                "DEVSHARE_HOST_CROSS_DEVICE_COPY=allow permits it");
}

// Takes `count` bytes off the front of a row of parts, or off its back; what is taken is one part.
Part take(std::vector<Part>& parts, std::uint64_t count, bool off_the_back) {
  Part& edge = parts.back();  // a row to be taken from the front is kept turned round
  Part taken = edge;
  edge.size -= count;
  if (off_the_back) {
    taken.offset += edge.size;
    taken.host = taken.block == nullptr ? taken.host + edge.size : nullptr;
  } else if (edge.block != nullptr) {
    edge.offset += count;
  } else {
    edge.host += count;
  }
  taken.size = count;
  if (edge.size == 0) parts.pop_back();
  return taken;
}

// Piece by piece; from the last to the first where the destination lies behind the source, so that overlapping ranges
// of a reservation keep their bytes.
acl::aclError move_pieces(const CopyEnd& to, void* destination, const CopyEnd& from, std::uint64_t count) {
  std::vector<Part> targets = parts_of(to, destination, count);
  std::vector<Part> sources = parts_of(from, const_cast<void*>(from.address), count);
  const bool backwards = number_of(to.address) > number_of(from.address);
  if (!backwards) {
    std::reverse(targets.begin(), targets.end());
    std::reverse(sources.begin(), sources.end());
  }
  while (!targets.empty()) {
    const std::uint64_t step = std::min(targets.back().size, sources.back().size);
    const Part target = take(targets, step, backwards);
    if (const int error = move_part(target, take(sources, step, backwards), step)) return report_move(error, count);
  }
  return 0;
}

// Both are memory of one device that this process did not get from another one: most copies.
bool at_home(const CopyEnd& to, const CopyEnd& from) {
  if (!to.on_device() || !from.on_device()) return false;
  const Block& a = to.record();
  const Block& b = from.record();
  return a.device == b.device && a.local_device == a.device && b.local_device == b.device;
}

// A range that its first block does not hold: the pieces behind that one, if it is a piece. False where they end too.
[[gnu::cold]] bool resolve_pieces(std::uint64_t count, Pin pin, CopyEnd* out) {
  out->more = std::make_unique<std::vector<PinnedBlock>>();
  return pin_pieces_behind(out->block, out->offset, count, out->more.get(), pin);
}

}  // namespace

acl::aclError resolve_end(const void* address, std::uint64_t count, CopyWay way, CopyEnd* out) {
  out->address = address;
  const std::uintptr_t at = number_of(address);
  const Pin pin = way == CopyWay::in_stream ? Pin::of_task : Pin::of_call;
  out->block = PinnedBlock(address, pin);
  if (!out->block) return in_window(at, count) ? nothing_there(address) : 0;
  const Block& block = out->record();
  if (block.origin == Origin::registered) [[unlikely]]
    return registered_memory(address);
  out->offset = at - block.base;
  if (out->offset > block.size || count > block.size - out->offset) [[unlikely]] {
    if (!resolve_pieces(count, pin, out)) return out_of_bounds(block, out->offset, count);
  }
  if (block.watch.gone()) [[unlikely]]
    return exporter_gone(block);
  if (const acl::aclError refused = check_accessible(block)) return refused;
  for (const PinnedBlock& piece : out->behind()) {
    if (const acl::aclError refused = check_accessible(*piece.record())) return refused;
  }
  return 0;
}

acl::aclError check_writable(const CopyEnd& to) {
  if (!to.in_block()) return 0;
  // Memory allocated read-only is so for kernels; the process that made it must be able to fill it.
  const auto writable = [](const Block& block) { return block.origin == Origin::allocated || !block.read_only; };
  bool all = writable(to.record());
  for (const PinnedBlock& piece : to.behind()) all = all && writable(*piece.record());
  return all ? code::success : read_only();
}

acl::aclError check_devices(const CopyEnd& to, const CopyEnd& from, acl::aclrtMemcpyKind asked, CopyWay way) {
  if (at_home(to, from)) return way == CopyWay::blocking ? check_mapped(to, from) : 0;
  if ((to.from_afar() || from.from_afar()) && !profile().cross_device_copy_allowed) {
    if (asked == kind::automatic) return refuse_afar("its copies must say their direction");
    if (!to.on_device() || !from.on_device()) return refuse_afar("no copies between it and the host");
    if (way == CopyWay::blocking && to.block.local_device() == from.block.local_device()) {
      return refuse_afar("no synchronous copy inside the device it was opened on");
    }
  }
  for (const CopyEnd* end : {&to, &from}) {
    if (!end->on_other_device()) continue;
    if (const acl::aclError refused = check_peer_access(end->record().local_device, end->record().device))
      return refused;
  }
  if (!to.on_device() || !from.on_device()) return 0;
  if (way == CopyWay::blocking) {
    if (const acl::aclError refused = check_mapped(to, from)) return refused;
  }
  return check_peer_access(from.record().local_device, to.record().local_device);
}

acl::aclError check_fill(const CopyEnd& to) {
  if (const acl::aclError refused = check_writable(to)) return refused;
  if (!to.on_other_device()) return 0;
  return check_peer_access(to.block.local_device(), to.block.device());
}

acl::aclError move_bytes(const CopyEnd& to, void* destination, const CopyEnd& from, std::uint64_t count) {
  const bool one_part_each = to.more == nullptr && from.more == nullptr;
  const bool same_memory = to.mapped() && from.mapped() && to.block.memory() == from.block.memory();
  if (!one_part_each || same_memory) return move_pieces(to, destination, from, count);
  if (to.in_block() && from.in_block()) {
    return report_move(move_block(to.record(), to.offset, from.record(), from.offset, count), count);
  }
  if (to.in_block()) return report_move(write_block(to.record(), to.offset, from.address, count), count);
  if (from.in_block()) return report_move(read_block(from.record(), from.offset, destination, count), count);
  copy_bulk(destination, from.address, count);
  return 0;
}

acl::aclError fill_bytes(const CopyEnd& to, void* host, unsigned char byte, std::uint64_t count) {
  if (!to.in_block()) {
    fill_bulk(host, byte, count);
    return 0;
  }
  if (to.more == nullptr) return report_move(fill_block(to.record(), to.offset, byte, count), count);
  for (const Part& part : parts_of(to, nullptr, count)) {
    if (const int error = fill_block(*part.block, part.offset, byte, part.size)) return report_move(error, count);
  }
  return 0;
}

}  // namespace devshare::host

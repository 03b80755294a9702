// SPDX-License-Identifier: Apache-2.0
#include "physical.hpp"

#include "backing.hpp"
#include "failure.hpp"
#include "fork.hpp"
#include "huge_pages.hpp"
#include "ledger.hpp"
#include "machine_pages.hpp"
#include "page_wish.hpp"
#include "per_process.hpp"
#include "token_exports.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace devshare::host {
namespace {

struct Counts {
  Physical memory;
  std::uint64_t owned = 1;   // by the program: created or imported, and retained
  std::uint64_t mapped = 0;  // by mappings
};

struct State : ProcessState<State> {
  std::unordered_map<std::uint64_t, Counts> handles;  // by the id of the memory; guarded by the mutex

  std::atomic<std::uint64_t> memories{0};
  std::atomic<std::uint64_t> charged_bytes{0};

  void close_inherited() noexcept {}
};

PerProcess<State> state;

// Goes on in a forked child: a handle of its parent is none of the child's.
constinit std::atomic<std::uint64_t> next_id{1};

// A handle is a number, never a pointer to something: a stale or invented one is refused and never followed.
constexpr std::uintptr_t handle_mark = 0xd;

acl::aclrtDrvMemHandle handle_of(std::uint64_t id) noexcept {
  return reinterpret_cast<acl::aclrtDrvMemHandle>(id << 4 | handle_mark);
}

std::uint64_t id_of(acl::aclrtDrvMemHandle handle) noexcept {
  const auto bits = reinterpret_cast<std::uintptr_t>(handle);
  return (bits & 0xf) == handle_mark ? bits >> 4 : 0;  // no memory has the id 0
}

// Under the lock: the counts of a handle that the program still owns, or null.
Counts* find_owned(State& all, acl::aclrtDrvMemHandle handle) {
  const auto found = all.handles.find(id_of(handle));
  return found != all.handles.end() && found->second.owned != 0 ? &found->second : nullptr;
}

// Under the lock: forgets a handle without counts. What it returns is dropped after the lock, since that may be the end
// of the memory.
Physical forget_if_unused(State& all, std::uint64_t id, Counts& counts) {
  if (counts.owned != 0 || counts.mapped != 0) return nullptr;
  Physical last = std::move(counts.memory);
  all.handles.erase(id);
  return last;
}

}  // namespace

PhysicalMemory::PhysicalMemory() : id(next_id.fetch_add(1, std::memory_order_relaxed)) {
  state.get().memories.fetch_add(1, std::memory_order_relaxed);
}

PhysicalMemory::~PhysicalMemory() {
  State& all = state.get();
  // First: until then importers are served.
  if (origin == HandleOrigin::allocated && shared_memory_ends(id)) empty_file(descriptor.get(), size);
  if (charged) {
    const std::uint64_t shared = known_file.load(std::memory_order_relaxed);
    if (shared == 0 || !ledger_let_go(shared)) ledger_release(device, size);
    all.charged_bytes.fetch_sub(size, std::memory_order_relaxed);
  }
  all.memories.fetch_sub(1, std::memory_order_relaxed);
}

std::uint64_t PhysicalMemory::file() const noexcept {
  std::uint64_t known = known_file.load(std::memory_order_relaxed);
  if (known != 0) return known;
  struct stat status {};
  if (::fstat(descriptor.get(), &status) == 0) known = status.st_ino;
  known_file.store(known, std::memory_order_relaxed);
  return known;
}

namespace {

enum class Pages : std::uint8_t { normal, populated, huge };

// Memory is mapped at multiples of its own pages, which a switch may make smaller than the machine's huge ones.
bool fits_huge_pages(const PhysicalRequest& request) { return request.page_size % huge_page_bytes == 0; }

acl::aclError back(Pages pages, std::uint64_t bytes, Backing* out) {
  if (pages != Pages::huge) return make_backing(bytes, pages == Pages::populated, out);
  return make_huge_backing(bytes, out) ? acl::code::success : acl::code::rt_memory_allocation;
}

acl::aclError make_physical_in(Pages pages, const PhysicalRequest& request, Physical* out) {
  const bool on_device = request.device >= 0;
  if (on_device) {
    if (const acl::aclError refused = ledger_claim(request.device, request.size)) return refused;
  }
  Backing backing;
  if (const acl::aclError refused = back(pages, request.size, &backing)) {
    if (on_device) ledger_take_back(request.device, request.size);
    return refused;
  }
  const auto made = std::make_shared<PhysicalMemory>();
  made->descriptor = std::move(backing.descriptor);
  made->sealed = backing.sealed;
  made->page_bytes = backing.page_bytes;
  made->populated = backing.populated;
  made->populate = pages != Pages::normal;
  made->size = request.size;
  made->page_size = request.page_size;
  made->property = request.property;
  made->device = request.device;
  made->local_device = request.device;
  made->p2p = request.p2p;
  if (on_device) {
    ledger_commit(request.device, request.size);
    made->charged = true;
    state.get().charged_bytes.fetch_add(request.size, std::memory_order_relaxed);
  }
  *out = made;
  return 0;
}

}  // namespace

// Whatever is in the way of huge pages is none of the caller's.
acl::aclError make_physical(const PhysicalRequest& request, Physical* out) {
  const PageWish wish = page_wish();
  if (wish.huge && fits_huge_pages(request) && make_physical_in(Pages::huge, request, out) == 0) return 0;
  return make_physical_in(wish.populate ? Pages::populated : Pages::normal, request, out);
}

acl::aclError adopt_physical(PhysicalImport&& import, Physical* out) {
  const bool charged = import.device >= 0 && !import.elsewhere;
  if (charged) {
    if (const acl::aclError refused = ledger_hold(import.device, import.file, import.size)) return refused;
  }
  const auto made = std::make_shared<PhysicalMemory>();
  made->descriptor = std::move(import.descriptor);
  made->sealed = import.sealed;
  made->page_bytes = import.page_bytes;
  made->populated = import.page_bytes > normal_page_bytes();
  made->populate = import.populate || made->populated;
  made->size = import.size;
  made->page_size = import.page_size;
  made->property = import.property;
  made->device = import.device;
  made->local_device = import.local_device;
  made->origin = import.origin;
  made->p2p = import.p2p;
  made->read_only = import.read_only;
  made->known_file.store(import.file, std::memory_order_relaxed);
  made->charged = charged;
  if (charged) state.get().charged_bytes.fetch_add(import.size, std::memory_order_relaxed);
  *out = made;
  return 0;
}

Physical physical_of(acl::aclrtDrvMemHandle handle) {
  State& all = state.get();
  const std::lock_guard lock(all.mutex);
  const Counts* const counts = find_owned(all, handle);
  return counts != nullptr ? counts->memory : nullptr;
}

acl::aclrtDrvMemHandle add_handle(Physical memory) {
  State& all = state.get();
  const std::uint64_t id = memory->id;
  const std::lock_guard lock(all.mutex);
  all.handles.emplace(id, Counts{.memory = std::move(memory)});
  return handle_of(id);
}

acl::aclrtDrvMemHandle retain_handle(const PhysicalMemory& memory) {
  State& all = state.get();
  const std::lock_guard lock(all.mutex);
  const auto found = all.handles.find(memory.id);
  if (found == all.handles.end()) return nullptr;
  ++found->second.owned;
  return handle_of(memory.id);
}

acl::aclError free_handle(acl::aclrtDrvMemHandle handle) {
  State& all = state.get();
  Physical last;
  const std::lock_guard lock(all.mutex);
  const auto found = all.handles.find(id_of(handle));
  if (found == all.handles.end()) return refuse_handle(handle);
  Counts& counts = found->second;
  if (counts.owned == 0) {
    return refuse(acl::code::rt_param_invalid, Reason::unknown_handle,
                  fmt::format("{} was freed as often as it was created, imported and retained (R39); {} mapping{} "
                              "still keep{} its memory: aclrtUnmapMem ends them",
                              handle, counts.mapped, counts.mapped == 1 ? "" : "s", counts.mapped == 1 ? "s" : ""));
  }
  --counts.owned;
  last = forget_if_unused(all, found->first, counts);
  return 0;
}

acl::aclError refuse_handle(acl::aclrtDrvMemHandle handle) {
  return refuse(
      acl::code::rt_invalid_handle, Reason::unknown_handle,
      fmt::format("{} is no handle of this process: freed already (R40), of another process, or none at all", handle));
}

Physical hold_for_mapping(acl::aclrtDrvMemHandle handle) {
  State& all = state.get();
  const std::lock_guard lock(all.mutex);
  Counts* const counts = find_owned(all, handle);
  if (counts == nullptr) return nullptr;
  ++counts->mapped;
  return counts->memory;
}

void drop_from_mapping(const Physical& memory) {
  State& all = state.get();
  Physical last;
  const std::lock_guard lock(all.mutex);
  const auto found = all.handles.find(memory->id);
  if (found == all.handles.end()) return;
  --found->second.mapped;
  last = forget_if_unused(all, found->first, found->second);
}

void handles_shut_down() {
  State* const all = state.existing();
  if (all == nullptr) return;
  std::unordered_map<std::uint64_t, Counts> last;
  const std::lock_guard lock(all->mutex);
  last.swap(all->handles);
}

PhysicalCounters physical_counters() {
  State& all = state.get();
  const std::lock_guard lock(all.mutex);
  return {.handles = all.handles.size(),
          .memories = all.memories.load(std::memory_order_relaxed),
          .bytes = all.charged_bytes.load(std::memory_order_relaxed)};
}

void handles_before_fork() { state.before_fork(); }
void handles_after_fork_in_parent() { state.after_fork_in_parent(); }
void handles_after_fork_in_child() { state.after_fork_in_child(); }

}  // namespace devshare::host

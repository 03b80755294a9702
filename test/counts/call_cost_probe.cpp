// SPDX-License-Identifier: Apache-2.0
// What callgrind looks at: calls through devshare, and the same ACL calls written by hand over the same table. Each case
// runs `repetitions` times; callgrind writes one dump for each, named after it. Run by call_cost.cpp.
//
// At the end it prints for each failing case how much it allocated.
#include <devshare/devshare.hpp>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <dlfcn.h>
#include <valgrind/callgrind.h>

using namespace devshare;

extern "C" void* __libc_malloc(std::size_t);  // NOLINT: glibc's name

namespace {

long allocations = 0;

constexpr int repetitions = 1000;
constexpr acl::aclError refusal_code = 507899;

// Keeps the compiler from seeing through a value, at no cost.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "m"(value) : "memory");
}

[[gnu::cold, noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "call_cost_probe: %s\n", what);
  std::exit(1);
}

struct Fixture {
  Runtime runtime;
  Device device;
  const acl::Table& table;
  std::int32_t& answer;
  DeviceSpan<std::byte> block;
  std::array<std::byte, 64> bytes{};
  std::int32_t number = 0;
  const acl::aclError expected;  // of the ACL calls: what the caller knows, and the compiler does not
};

// The bookkeeping that a program has anyway without devshare: make the device current unless it is, and look at the
// code.
[[gnu::always_inline]] inline bool by_hand_current(const Fixture& f) {
  std::int32_t current = -1;
  return f.table.aclrtGetDevice(&current) == 0 && current == f.number;
}

// Each pair does the same. `failing` ones run while the library refuses everything.
[[gnu::noinline]] void bare_pid_by_hand(Fixture& f) {
  for (int i = 0; i < repetitions; ++i) {
    std::int32_t pid = 0;
    if (f.table.aclrtDeviceGetBareTgid(&pid) != f.expected) [[unlikely]] give_up("bare pid");
    keep(pid);
  }
}
[[gnu::noinline]] void bare_pid_wrapped(Fixture& f) {
  for (int i = 0; i < repetitions; ++i) {
    auto pid = f.runtime.bare_pid();
    if (!pid) [[unlikely]] give_up("bare pid");
    keep(*pid);
  }
}
[[gnu::noinline]] void bare_pid_failing(Fixture& f) {
  for (int i = 0; i < repetitions; ++i) {
    auto pid = f.runtime.bare_pid();
    if (pid) [[unlikely]] give_up("bare pid did not fail");
    keep(pid.error());
  }
}

[[gnu::noinline]] void allocate_by_hand(Fixture& f) {
  for (int i = 0; i < repetitions; ++i) {
    void* address = nullptr;
    if (!by_hand_current(f)) [[unlikely]] give_up("device");
    if (f.table.aclrtMalloc(&address, 4096, 0) != 0) [[unlikely]] give_up("malloc");
    keep(address);
    if (!by_hand_current(f)) [[unlikely]] give_up("device");
    if (f.table.aclrtFree(address) != 0) [[unlikely]] give_up("free");
  }
}
[[gnu::noinline]] void allocate_wrapped(Fixture& f) {
  for (int i = 0; i < repetitions; ++i) {
    auto memory = DeviceMemory::allocate(f.device, 4096);
    if (!memory) [[unlikely]] give_up("allocate");
    auto block = *std::move(memory);
    keep(block.bytes().data().address());
    if (!std::move(block).close()) [[unlikely]] give_up("close");
  }
}
[[gnu::noinline]] void allocate_failing_by_hand(Fixture& f) {
  for (int i = 0; i < repetitions; ++i) {
    void* address = nullptr;
    if (!by_hand_current(f)) [[unlikely]] give_up("device");
    if (f.table.aclrtMalloc(&address, 4096, 0) != f.expected) [[unlikely]] give_up("malloc did not fail");
    keep(address);
  }
}
[[gnu::noinline]] void allocate_failing(Fixture& f) {
  for (int i = 0; i < repetitions; ++i) {
    auto memory = DeviceMemory::allocate(f.device, 4096);
    if (memory) [[unlikely]] give_up("allocate did not fail");
    keep(memory.error());
  }
}

[[gnu::noinline]] void copy_in_by_hand(Fixture& f) {
  for (int i = 0; i < repetitions; ++i) {
    if (!by_hand_current(f)) [[unlikely]] give_up("device");
    if (f.table.aclrtMemcpy(f.block.data().address(), f.block.size_bytes(), f.bytes.data(), f.bytes.size(), 1) !=
        f.expected) [[unlikely]] {
      give_up("copy");
    }
  }
}
[[gnu::noinline]] void copy_in_wrapped(Fixture& f) {
  for (int i = 0; i < repetitions; ++i) {
    if (!copy_to_device(f.device, f.block, f.bytes)) [[unlikely]] give_up("copy");
  }
}
[[gnu::noinline]] void copy_in_failing(Fixture& f) {
  for (int i = 0; i < repetitions; ++i) {
    const auto copied = copy_to_device(f.device, f.block, f.bytes);
    if (copied) [[unlikely]] give_up("copy did not fail");
    keep(copied.error());
  }
}

[[gnu::noinline]] void copy_out_by_hand(Fixture& f) {
  for (int i = 0; i < repetitions; ++i) {
    if (!by_hand_current(f)) [[unlikely]] give_up("device");
    if (f.table.aclrtMemcpy(f.bytes.data(), f.bytes.size(), f.block.data().address(), f.bytes.size(), 2) != 0)
        [[unlikely]] {
      give_up("copy");
    }
  }
}
[[gnu::noinline]] void copy_out_wrapped(Fixture& f) {
  for (int i = 0; i < repetitions; ++i) {
    if (!copy_to_host(f.device, std::span(f.bytes), f.block.first(f.bytes.size()))) [[unlikely]] give_up("copy");
  }
}

// Out of line, and they make a ticket besides: measured, not held to the count for inline calls.
[[gnu::noinline]] void admit_by_hand(Fixture& f) {
  static const char key[65] = {};
  for (int i = 0; i < repetitions; ++i) {
    std::int32_t pid = 7;
    if (f.table.aclrtIpcMemSetImportPid(key, &pid, 1) != 0) [[unlikely]] give_up("admit");
  }
}
[[gnu::noinline]] void admit_wrapped(Fixture&, SharedMemoryKey<>& key) {
  for (int i = 0; i < repetitions; ++i) {
    const auto ticket = key.admit(BarePid::from_peer_message(7));
    if (!ticket) [[unlikely]] give_up("admit");
    keep(ticket->bytes());
  }
}

// Cold paths are taken once before, so that the dynamic linker's work is not counted.
template <class Case>
void measure(const char* name, Fixture& f, acl::aclError answer, Case run) {
  f.answer = answer;
  run(f);
  CALLGRIND_ZERO_STATS;
  const long before = allocations;
  CALLGRIND_TOGGLE_COLLECT;
  run(f);
  CALLGRIND_TOGGLE_COLLECT;
  CALLGRIND_DUMP_STATS_AT(name);
  std::printf("%s %ld\n", name, allocations - before);
  f.answer = 0;
}

}  // namespace

// Counts what allocates, whoever does.
extern "C" void* malloc(std::size_t size) {
  ++allocations;
  return __libc_malloc(size);
}

int main() {
  auto runtime = Runtime::open();
  if (!runtime) give_up("the runtime does not open");
  auto device = runtime->device(DeviceId{0});
  if (!device) give_up("there is no device");
  void* const library = ::dlopen(std::getenv("DEVSHARE_RUNTIME"), RTLD_NOW | RTLD_NOLOAD);
  auto* const answer = library == nullptr ? nullptr : static_cast<std::int32_t*>(::dlsym(library, "empty_acl_answer"));
  if (answer == nullptr) give_up("this needs the empty library");
  auto memory = DeviceMemory::allocate(*device, 4096);
  if (!memory) give_up("no memory");
  auto block = *std::move(memory);

  const auto fixture = [&](acl::aclError expected) {
    return Fixture{*runtime,      *device, runtime->session().record->table, *answer, block.bytes(), {}, 0,
                   expected};
  };
  Fixture good = fixture(0);
  Fixture bad = fixture(refusal_code);
  measure("bare_pid.by_hand", good, 0, bare_pid_by_hand);
  measure("bare_pid.wrapped", good, 0, bare_pid_wrapped);
  measure("allocate.by_hand", good, 0, allocate_by_hand);
  measure("allocate.wrapped", good, 0, allocate_wrapped);
  measure("copy_in.by_hand", good, 0, copy_in_by_hand);
  measure("copy_in.wrapped", good, 0, copy_in_wrapped);
  measure("copy_out.by_hand", good, 0, copy_out_by_hand);
  measure("copy_out.wrapped", good, 0, copy_out_wrapped);
  measure("bare_pid_failing.by_hand", bad, refusal_code, bare_pid_by_hand);
  measure("bare_pid_failing.wrapped", bad, refusal_code, bare_pid_failing);
  measure("allocate_failing.by_hand", bad, refusal_code, allocate_failing_by_hand);
  measure("allocate_failing.wrapped", bad, refusal_code, allocate_failing);
  measure("copy_in_failing.by_hand", bad, refusal_code, copy_in_by_hand);
  measure("copy_in_failing.wrapped", bad, refusal_code, copy_in_failing);

  auto exported = export_key(std::move(block));
  if (!exported) give_up("no key");
  auto key = *std::move(exported);
  measure("admit.by_hand", good, 0, admit_by_hand);
  measure("admit.wrapped", good, 0, [&key](Fixture& f) { admit_wrapped(f, key); });
}

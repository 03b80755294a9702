// SPDX-License-Identifier: Apache-2.0
// The time of single calls, through devshare and by hand over the same table. Which runtime is under them is up to
// DEVSHARE_RUNTIME: the library that does nothing shows the wrapper alone, the host runtime what it is part of.
//
// Times are of this machine at this moment; what holds everywhere is counted by test/counts/instructions.cpp.
#include <devshare/devshare.hpp>

#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>

#include <unistd.h>

namespace {

using namespace devshare;

constexpr std::size_t size = 4096;

struct Fixture {
  Runtime runtime;
  Device device;
  const acl::Table& table = runtime.session().record->table;

  static Fixture& get() {
    static Fixture fixture = [] {
      const auto opened = Runtime::open();
      if (!opened) std::exit(1);
      const auto first = opened->device(DeviceId{0});
      if (!first || !first->make_current()) std::exit(1);
      return Fixture{*opened, *first};
    }();
    return fixture;
  }
};

void bare_pid_by_hand(benchmark::State& state) {
  const Fixture& f = Fixture::get();
  for (auto _ : state) {
    std::int32_t pid = 0;
    if (f.table.aclrtDeviceGetBareTgid(&pid) != 0) state.SkipWithError("refused");
    benchmark::DoNotOptimize(pid);
  }
}
BENCHMARK(bare_pid_by_hand);

void bare_pid(benchmark::State& state) {
  const Fixture& f = Fixture::get();
  for (auto _ : state) {
    auto pid = f.runtime.bare_pid();
    if (!pid) state.SkipWithError("refused");
    benchmark::DoNotOptimize(pid);
  }
}
BENCHMARK(bare_pid);

void allocate_and_free_by_hand(benchmark::State& state) {
  const Fixture& f = Fixture::get();
  for (auto _ : state) {
    void* address = nullptr;
    if (f.table.aclrtMalloc(&address, size, 0) != 0) state.SkipWithError("refused");
    benchmark::DoNotOptimize(address);
    if (f.table.aclrtFree(address) != 0) state.SkipWithError("refused");
  }
}
BENCHMARK(allocate_and_free_by_hand);

void allocate_and_free(benchmark::State& state) {
  const Fixture& f = Fixture::get();
  for (auto _ : state) {
    auto allocated = DeviceMemory::allocate(f.device, size);
    if (!allocated) state.SkipWithError("refused");
    auto memory = *std::move(allocated);
    benchmark::DoNotOptimize(memory.bytes().data().address());
    if (!std::move(memory).close()) state.SkipWithError("refused");
  }
}
BENCHMARK(allocate_and_free);

// One byte, again and again, so that the block is mapped and the copy itself is nothing.
void copy_by_hand(benchmark::State& state) {
  const Fixture& f = Fixture::get();
  void* address = nullptr;
  if (f.table.aclrtMalloc(&address, size, 0) != 0) state.SkipWithError("refused");
  const std::array<std::byte, size> bytes{};
  for (int i = 0; i < 32; ++i) {
    if (f.table.aclrtMemcpy(address, size, bytes.data(), size, acl::memcpy_kind::host_to_device) != 0) {
      state.SkipWithError("refused");
    }
  }
  for (auto _ : state) {
    if (f.table.aclrtMemcpy(address, size, bytes.data(), 1, acl::memcpy_kind::host_to_device) != 0) {
      state.SkipWithError("refused");
    }
  }
  if (f.table.aclrtFree(address) != 0) state.SkipWithError("refused");
}
BENCHMARK(copy_by_hand);

void copy(benchmark::State& state) {
  const Fixture& f = Fixture::get();
  auto allocated = DeviceMemory::allocate(f.device, size);
  if (!allocated) state.SkipWithError("refused");
  auto memory = *std::move(allocated);
  const std::array<std::byte, size> bytes{};
  for (int i = 0; i < 32; ++i) {
    if (!copy_to_device(f.device, memory.bytes(), bytes)) state.SkipWithError("refused");
  }
  const std::array<std::byte, 1> one{};
  const auto target = memory.bytes().first(1);
  for (auto _ : state) {
    if (!copy_to_device(f.device, target, one)) state.SkipWithError("refused");
  }
}
BENCHMARK(copy);

// An export of its own each time, with its ticket for a process that is there: whoever started this one.
void export_admit_and_close(benchmark::State& state) {
  const Fixture& f = Fixture::get();
  const auto importer = BarePid::from_peer_message(static_cast<std::int32_t>(::getppid()));
  auto allocated = DeviceMemory::allocate(f.device, size);
  if (!allocated) state.SkipWithError("refused");
  std::optional<DeviceMemory> memory(*std::move(allocated));
  for (auto _ : state) {
    auto exported = export_key(*std::exchange(memory, std::nullopt));
    if (!exported) {
      state.SkipWithError("refused");
      return;
    }
    auto key = *std::move(exported);
    auto ticket = key.admit(importer);
    if (!ticket) state.SkipWithError("refused");
    benchmark::DoNotOptimize(ticket);
    auto closed = std::move(key).close();
    if (!closed) {
      state.SkipWithError("refused");
      return;
    }
    memory.emplace(*std::move(closed));
  }
}
BENCHMARK(export_admit_and_close);

}  // namespace

BENCHMARK_MAIN();

// SPDX-License-Identifier: Apache-2.0
// The host runtime as an instrument for tests: switches, faults, delays, a journal of calls, counters, and the bytes
// of device memory for code that plays a kernel. For your own CI as much as for ours.
//
// Everything here acts on the host runtime of this process and is harmless while another runtime is in use: nothing
// is counted, nothing fails. Every function may be called from any thread at any time, also before aclInit, and none
// throws. The same can be asked for by environment variables (docs/host-runtime.md lists them), which child processes
// inherit.
#pragma once

#include <devshare/acl/table.hpp>
#include <devshare/detail/attributes.hpp>
#include <devshare/detail/cause.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace devshare::host {

// True when the host runtime is the runtime of this process, by the drop-in or by devshare; not before one has chosen it.
DEVSHARE_API bool active() noexcept;

// --- The machine that is played ---------------------------------------------------------------------------------

// Sets a switch by the name of its variable without DEVSHARE_HOST_ (or by its whole name), over the environment:
// set("DEVICES", "4"), set("CAPACITY", "1M"), set("PEERS", "01/10"), set("ASCEND_RT_VISIBLE_DEVICES", "1"). It takes
// effect at the next aclInit that starts a session; a value that cannot be understood makes that aclInit fail with
// 100000 and a text in aclGetRecentErrMsg. False when there is no such switch.
DEVSHARE_API bool set(std::string_view name, std::string_view value);
DEVSHARE_API void unset_all();

// --- Faults and delays --------------------------------------------------------------------------------------------

// The nth call of `call` from now on (1 is the next, 0 means every one) is not made and returns `code`, once. Several
// may wait at a time, for the same call too. `code` 0 would be a lie to the caller and is ignored.
//   host::fail(acl::Entry::aclrtIpcMemImportByKey, 1, acl::code::rt_drv_internal);
DEVSHARE_API void fail(acl::Entry call, std::uint32_t nth, acl::aclError code);

// Each call of `call` fails with that probability (0..1). The same seed gives the same calls.
DEVSHARE_API void fail_with_probability(acl::Entry call, double probability, std::uint64_t seed, acl::aclError code);

// Each call of `call` first sleeps so long.
DEVSHARE_API void delay(acl::Entry call, std::uint32_t milliseconds);

// The same two for what stands in a stream: the call itself succeeds, and its nth task from now on is not carried out
// when its turn comes, and fails with `code`; or each first sleeps so long, which holds up its own stream only. A copy of
// pageable memory is such a task too.
//   host::fail_task(acl::Entry::aclrtMemcpyAsync, 1, acl::code::rt_drv_internal);
DEVSHARE_API void fail_task(acl::Entry call, std::uint32_t nth, acl::aclError code);
DEVSHARE_API void delay_task(acl::Entry call, std::uint32_t milliseconds);

// Drops every fault and every delay, those of the environment included.
DEVSHARE_API void clear();

// --- The journal ----------------------------------------------------------------------------------------------------

// From now on every call is written to this file as one line of JSON, by one write to its end, so that processes can
// share it:
//   {"order":81234567,"took":2100,"pid":71,"tid":71,"call":"aclrtMalloc","arguments":{"size":4096},"result":0}
// `order` is CLOCK_MONOTONIC in nanoseconds at the start of the call, the same clock in all processes of a machine, so
// that sorting by it merges them; `took` is in nanoseconds. "" ends it. False, with errno set, when the file cannot be
// opened; the journal is then what it was.
DEVSHARE_API bool journal_to(std::string_view path);

struct CallRecord {
  std::uint64_t order = 0;  // CLOCK_MONOTONIC, ns
  std::uint64_t took = 0;   // ns
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  acl::Entry call = acl::Entry::none;
  acl::aclError result = 0;
  std::string arguments;  // a JSON object
};

// Keeps the calls of this process in memory, from now on or no longer; either way forgets those kept before.
DEVSHARE_API void record_calls(bool on);
DEVSHARE_API std::vector<CallRecord> recorded_calls();

// The name of the C function, e.g. "aclrtMalloc"; and back, Entry::none for none.
DEVSHARE_API std::string_view entry_name(acl::Entry entry) noexcept;
DEVSHARE_API acl::Entry entry_by_name(std::string_view name) noexcept;

// --- Counters -----------------------------------------------------------------------------------------------------
// Of this process.

// What this process has right now. All zero again when everything was given back.
struct Counters {
  std::uint64_t allocations = 0;    // of device memory
  std::uint64_t bytes = 0;          // in them and behind handles, as charged to the devices
  std::uint64_t imports = 0;        // mapped or cold imports
  std::uint64_t views = 0;          // private views of device memory
  std::uint64_t descriptors = 0;    // held by device memory, physical memory and imports
  std::uint64_t keys_exported = 0;  // live export keys
  std::uint64_t keys_imported = 0;  // distinct keys open
  std::uint64_t key_opens = 0;      // imports not yet closed
  std::uint64_t connections = 0;    // to importers and exporters
  std::uint64_t peer_grants = 0;    // directions this process holds on, each as often as it enabled it
  std::uint64_t handles = 0;        // of physical memory, live
  std::uint64_t reservations = 0;   // of addresses
  std::uint64_t mappings = 0;       // of physical memory at addresses
  std::uint64_t registrations = 0;  // of host memory
  // Live tokens of physical handles, and handles imported by token whose memory is there.
  std::uint64_t tokens_exported = 0;
  std::uint64_t handles_imported = 0;
  std::uint64_t streams = 0;  // created and not destroyed
  std::uint64_t events = 0;   // likewise
  std::uint64_t notifies = 0;  // likewise, imported ones too
  bool operator==(const Counters&) const = default;
};
DEVSHARE_API Counters counters();

// "2 allocations, 8192 bytes, 1 keys exported": what is not zero; "nothing" where all is.
DEVSHARE_API std::string in_words(const Counters& counters);

// Journal lines that could not be written (a full disk, a descriptor closed behind our back) since the process began.
DEVSHARE_API std::uint64_t journal_lines_lost() noexcept;

// --- The devices, over all processes ------------------------------------------------------------------------------
// Of this user's that play the same machine.

// Bytes in use on a device, by its physical number, over all live processes: exact, also after kill -9 of any.
DEVSHARE_API std::uint64_t bytes_in_use(std::int32_t physical_device);

// How far that sees: "machine" (all processes of this user with the same devices and state directory) or "process".
DEVSHARE_API std::string_view device_state_scope();
// Why it is not "machine", in words; "" when it is.
DEVSHARE_API std::string device_state_note();

// --- A kernel's part ------------------------------------------------------------------------------------------------
// The bytes that kernels work on, and a place in a stream.

enum class ViewAccess : std::uint8_t { read, read_write };

// The bytes at a device address of this process, as a kernel would see them, or null with the cause in `*why` (which
// may be null). The whole range must lie in one allocation or import, or in the pieces of one reservation with no hole
// between them; the device's address of registered host memory has a view as well. An import whose exporter is gone,
// read_write of read-only memory, and memory mapped without access are refused. The pointer is good until the memory is
// freed or the import closed; what is written through it is what copies and other processes see, ordered by nothing but
// your own synchronisation. The memory becomes mapped by this, which costs page faults at first touch.
DEVSHARE_API void* view_of(const void* device_address, std::size_t size, ViewAccess access,
                           detail::Cause* why = nullptr);

// Runs a function in a stream (null: the default stream of the current context), in its turn, on a thread of the
// runtime: code that plays a kernel. It may take its time and may wait for other streams, but not for its own, and should
// not throw. 0, or the code of why it will not run, with the cause in `*why`.
DEVSHARE_API acl::aclError launch(acl::aclrtStream stream, void (*function)(void* argument), void* argument,
                                  detail::Cause* why = nullptr);

}  // namespace devshare::host

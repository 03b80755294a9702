/* SPDX-License-Identifier: Apache-2.0 */
/* The instrument of the host runtime for C, and for whatever can call C. Each function does what its twin in
 * devshare/instrument.hpp does, where the words are; a call of ACL is named as it is spelled ("aclrtMalloc").
 *
 * Any thread, at any time, also before aclInit. Where it is not said otherwise an int is 0, or -1 with errno: EINVAL for a
 * name that is none. Link libdevshare (pkg-config devshare) beside the drop-in. */
#ifndef DEVSHARE_INSTRUMENT_H
#define DEVSHARE_INSTRUMENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 1 when the host runtime is the runtime of this process, by the drop-in or by devshare; 0 before one has chosen it. */
int devshare_host_active(void);

/* The machine that is played, from the next session on: devshare_host_set("DEVICES", "4"). */
int devshare_host_set(const char *name, const char *value);
void devshare_host_unset_all(void);

/* Faults and delays: of calls, and of what stands in streams. `nth` 1 is the next, 0 every one; a `code` of 0 is ignored. */
int devshare_host_fail(const char *call, uint32_t nth, int code);
int devshare_host_fail_with_probability(const char *call, double probability, uint64_t seed, int code);
int devshare_host_delay(const char *call, uint32_t milliseconds);
int devshare_host_fail_task(const char *call, uint32_t nth, int code);
int devshare_host_delay_task(const char *call, uint32_t milliseconds);
void devshare_host_clear(void);

/* The journal of calls, as JSON lines; "" ends it. */
int devshare_host_journal_to(const char *path);
uint64_t devshare_host_journal_lines_lost(void);

/* What this process has now, by the name of a member of devshare::host::Counters: "allocations", "keys_exported". */
int devshare_host_counter(const char *name, uint64_t *value);

/* Over all processes. The scope is "machine" or "process", a string that stays. */
uint64_t devshare_host_bytes_in_use(int32_t physical_device);
const char *devshare_host_device_state_scope(void);

/* Device memory as a kernel sees it; null where it may not be seen so. Good until the memory ends. */
void *devshare_host_view(const void *device_address, size_t size, int writable);

/* Runs a function in a stream, in its turn, as a kernel. 0, or ACL's code of why it will not run. */
int devshare_host_launch(void *stream, void (*function)(void *argument), void *argument);

#ifdef __cplusplus
}
#endif

#endif

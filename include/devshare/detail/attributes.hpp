// SPDX-License-Identifier: Apache-2.0
// Attributes by which the compiler refuses wrong use. On a compiler without one the macro is empty: what it would have
// refused is then an error value at run time.
#pragma once

#define DEVSHARE_API __attribute__((visibility("default")))

// A wrapper of a few instructions, which a compiler would rather call: the promise is ten instructions, not a call.
#define DEVSHARE_INLINE inline __attribute__((always_inline))

#if defined(__clang__)
// -Wconsumed: an object is `unconsumed` when it is made and `consumed` once a consuming step took it.
#define DEVSHARE_CONSUMABLE __attribute__((consumable(unconsumed)))
#define DEVSHARE_CONSUMES __attribute__((callable_when("unconsumed", "unknown"))) __attribute__((set_typestate(consumed)))
#define DEVSHARE_READS __attribute__((callable_when("unconsumed", "unknown")))
#define DEVSHARE_CONSUMED_PARAMETER __attribute__((param_typestate(unconsumed)))
// -Wdangling, -Wreturn-stack-address: the result refers into the object.
#define DEVSHARE_LIFETIMEBOUND [[clang::lifetimebound]]
#else
#define DEVSHARE_CONSUMABLE
#define DEVSHARE_CONSUMES
#define DEVSHARE_READS
#define DEVSHARE_CONSUMED_PARAMETER
#define DEVSHARE_LIFETIMEBOUND
#endif

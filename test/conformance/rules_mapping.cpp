// SPDX-License-Identifier: Apache-2.0
// R36 to R40: how physical memory is mapped, and how it ends.
#include "expect.hpp"

using namespace conformance;
namespace code = acl::code;
namespace mem_access = acl::mem_access;

TEST_CASE("R36: sizes are multiples of the granularity, and all that is reserved is 0") {
  Acl a;
  CODE("physical memory of no size", a.physical(0).code, code::rt_param_invalid);
  // Some releases round up.
  CODE("physical memory of an odd size", a.physical(piece + 1).code, Expected::either({code::rt_param_invalid, 0}));
  CODE("a reservation of no size", a.reserve(0).code, code::invalid_param);
  CODE("a reservation with an alignment", a.reserve(piece, 4096).code, code::rt_param_invalid);
  CODE("a reservation with flags 2", a.reserve(piece, 0, 2).code, code::invalid_param);
  CODE("a reservation with flags 1, as older releases have", a.reserve(piece, 0, 1).code, 0);
  const Handle handle = a.physical().value;
  void* const range = a.reserve(2 * piece).value;
  CODE("mapped with an offset", a.map(range, handle, piece, piece), Expected::refused());
  CODE("mapped with flags 1", a.map(range, handle, piece, 0, 1),
       Expected::either({code::invalid_param, code::rt_param_invalid}));
  CODE("mapped with half of a size", a.map(range, handle, piece / 2), Expected::refused());
  CODE("mapped", a.map(range, handle), 0);
}

TEST_CASE("R37: access is set for what was mapped, to read and write") {
  Acl a;
  const Handle handle = a.physical(2 * piece).value;
  void* const range = a.reserve(2 * piece).value;
  CODE("mapped", a.map(range, handle, 2 * piece), 0);
  CODE("for a part of it", a.set_access(range, piece, 0), code::rt_drv_internal);
  CODE("to read only", a.set_access(range, 2 * piece, 0, mem_access::read), code::rt_feature_not_support);
  CODE("for nobody", a.set_access(range, 2 * piece, 0, mem_access::none), code::rt_feature_not_support);
  CODE("to read and write", a.set_access(range, 2 * piece, 0), 0);
}

TEST_CASE("R38: unmapped by the address of the map, before the reservation is released") {
  Acl a;
  const Handle handle = a.physical(2 * piece).value;
  char* const range = static_cast<char*>(a.reserve(2 * piece).value);
  CODE("mapped", a.map(range, handle, 2 * piece), 0);
  CODE("unmapped in its middle", a.unmap(range + piece), code::rt_drv_internal);
  CODE("unmapped", a.unmap(range), 0);
  CODE("unmapped again", a.unmap(range), code::rt_drv_internal);
  CODE("aclrtFree of a reservation", a.free(range), code::rt_param_invalid);
  CODE("released", a.release(range), 0);
  CODE("released again", a.release(range), code::rt_param_invalid);
  void* const other = a.reserve(2 * piece).value;
  CODE("mapped anew", a.map(other, handle, 2 * piece), 0);
  // The documents forbid it; one driver tears the mapping down.
  CODE("released while mapped", a.release(other), Expected::either({code::rt_drv_internal, 0}));
}

TEST_CASE("R39: each holder frees its handle, and each retain wants one free more") {
  Acl a;
  const Handle handle = a.physical().value;
  void* const range = a.reserve().value;
  CODE("mapped", a.map(range, handle), 0);
  const Got<Handle> retained = a.retain(range);
  CODE("retained", retained.code, 0);
  CODE("retained by an address inside", a.retain(static_cast<char*>(range) + 4096).code, Expected::refused());
  CODE("freed", a.free_physical(handle), 0);
  CODE("freed for the retain", a.free_physical(retained.value), 0);
  CODE("freed once too often, while mapped", a.free_physical(handle), code::rt_param_invalid);
  CODE("a copy to the mapping, which keeps the memory", a.put(range, 'm'), 0);
  CODE("unmapped", a.unmap(range), 0);
}

TEST_CASE("R40: a handle is not used after it was freed") {
  if (!is_ours()) CONFORMANCE_SKIP("what happens is not defined");
  Acl a;
  const Handle handle = a.physical().value;
  CODE("freed", a.free_physical(handle), 0);
  CODE("mapped after that", a.map(a.reserve().value, handle), code::rt_invalid_handle);
  CODE("exported after that", a.export_v1(handle, acl::vmm_export::listed).code, code::rt_invalid_handle);
}

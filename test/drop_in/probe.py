#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Python program that finds ACL by its name, as Ascend's own do."""

import ctypes
import sys

for name, began in (("libascendcl.so", 0), ("libacl_rt.so", 100002)):
    acl = ctypes.CDLL(name)
    assert acl.aclInit(None) == began, name  # one runtime by both names
    count = ctypes.c_uint32()
    assert acl.aclrtGetDeviceCount(ctypes.byref(count)) == 0 and count.value >= 1
    assert acl.aclrtSetDevice(0) == 0
    memory = ctypes.c_void_p()
    assert acl.aclrtMalloc(ctypes.byref(memory), ctypes.c_size_t(4096), 0) == 0
    data = ctypes.create_string_buffer(b"x" * 4096)
    assert acl.aclrtMemcpy(memory, ctypes.c_size_t(4096), data, ctypes.c_size_t(4096), 1) == 0
    back = ctypes.create_string_buffer(4096)
    assert acl.aclrtMemcpy(back, ctypes.c_size_t(4096), memory, ctypes.c_size_t(4096), 2) == 0
    assert back.raw == data.raw[:4096]
    assert acl.aclrtFree(memory) == 0
assert acl.aclFinalize() == 0
print("ok")
sys.exit(0)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls each function of ACL that is named, by its name alone: none of them is implemented, and each says so."""

import ctypes
import sys

acl = ctypes.CDLL("libascendcl.so")
acl.aclGetRecentErrMsg.restype = ctypes.c_char_p
assert acl.aclInit(None) == 0
for name in sys.argv[1:]:
    code = getattr(acl, name)()
    assert code == 207000, f"{name} returns {code}"
    text = acl.aclGetRecentErrMsg()
    assert f" {name} is not implemented".encode() in (text or b""), f"{name} says {text}"
assert acl.aclFinalize() == 0
print("ok")

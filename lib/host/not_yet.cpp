// SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"
#include "failure.hpp"

namespace devshare::host {
namespace {
acl::aclError not_yet() { return refuse(acl::code::rt_feature_not_support, Reason::unsupported, "not there yet"); }
}  // namespace

acl::aclError calls::aclrtMemSetAccess(void*, std::size_t, aclrtMemAccessDesc*, std::size_t) { return not_yet(); }
acl::aclError calls::aclrtMemGetAccess(void*, aclrtMemLocation*, std::uint64_t*) { return not_yet(); }
acl::aclError calls::aclrtMemGetAddressRange(void*, void**, std::size_t*) { return not_yet(); }
acl::aclError calls::aclrtPointerGetAttributes(const void*, aclrtPtrAttributes*) { return not_yet(); }
acl::aclError calls::aclrtMemP2PMap(void*, std::size_t, std::int32_t, std::uint64_t) { return not_yet(); }
acl::aclError calls::aclrtHostRegister(void*, std::uint64_t, aclrtHostRegisterType, void**) { return not_yet(); }
acl::aclError calls::aclrtHostRegisterV2(void*, std::uint64_t, std::uint32_t) { return not_yet(); }
acl::aclError calls::aclrtHostGetDevicePointer(void*, void**, std::uint32_t) { return not_yet(); }
acl::aclError calls::aclrtHostUnregister(void*) { return not_yet(); }

}  // namespace devshare::host

// SPDX-License-Identifier: Apache-2.0
#include <devshare/host_registration.hpp>

namespace devshare {

Result<HostRegistration> HostRegistration::of(const Device& device, std::span<std::byte> host) noexcept {
  constexpr Operation operation = Operation::register_host;
  const detail::Session& session = device.session();
  if (!session.alive()) return detail::unusable(session, operation);
  if (host.empty()) return Error(Errc::invalid_argument, operation, {.device = device.number()});
  const detail::RuntimeRecord& runtime = *session.record;
  if (runtime.table.aclrtHostRegister == nullptr || runtime.table.aclrtHostUnregister == nullptr) {
    return detail::lacking(operation, acl::Entry::aclrtHostRegister);
  }
  const detail::CurrentDevice current(runtime, device.number());
  void* on_device = nullptr;
  acl::aclError code = current.code();
  if (code == 0) {
    code = runtime.table.aclrtHostRegister(host.data(), host.size(), acl::host_register_type::mapped, &on_device);
  }
  if (code != 0) {
    return detail::refusal(runtime, operation, acl::Entry::aclrtHostRegister, code,
                           {.device = device.number(), .needed = host.size()});
  }
  return HostRegistration(session, {host.data(), on_device, host.size(), device.number()});
}

Result<void, Refused<HostRegistration>> HostRegistration::close() && noexcept {
  return detail::close_or_give_back(*this, owned_, Operation::unregister_host);
}

Result<void> detail::RegistrationPolicy::close(const Session& session, const Value& value) noexcept {
  const RuntimeRecord& runtime = *session.record;
  const CurrentDevice current(runtime, value.device);
  acl::aclError code = current.code();
  if (code == 0) code = runtime.table.aclrtHostUnregister(value.host);
  if (code == 0) return {};
  return refusal(runtime, Operation::unregister_host, acl::Entry::aclrtHostUnregister, code,
                 {.device = value.device, .needed = value.size});
}

}  // namespace devshare

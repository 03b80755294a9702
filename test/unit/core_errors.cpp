// SPDX-License-Identifier: Apache-2.0
// What errors say: each operation by each code of the runtime (B083), and what to do about each kind (B091).
#include "support/catch.hpp"

#include <devshare/format.hpp>

#include <core/catalogue.hpp>
#include <core/runtime_state.hpp>

#include <map>
#include <set>
#include <string>
#include <vector>

using namespace devshare;

namespace {

template <class Enum>
std::vector<Enum> all(Enum first, Enum last) {
  std::vector<Enum> values;
  for (int number = static_cast<int>(first); number <= static_cast<int>(last); ++number) {
    values.push_back(static_cast<Enum>(number));
  }
  return values;
}

std::vector<Errc> all_kinds() { return all(Errc::invalid_argument, Errc::refused); }
std::vector<Operation> all_operations() { return all(Operation::open_runtime, Operation::use_mapping); }
std::vector<Error::Reason> all_reasons() { return all(Error::Reason::not_initialised, detail::last_reason); }

std::vector<acl::aclError> all_codes() {
  std::vector<acl::aclError> codes;
#define DEVSHARE_TAKE(name, value, text) \
  if (value != 0) codes.push_back(value);
  DEVSHARE_ACL_CODES(DEVSHARE_TAKE)
#undef DEVSHARE_TAKE
  codes.push_back(999999);  // a code of a later release
  return codes;
}

// Both ends and both numbers of a failure, in digits that appear nowhere else.
constexpr Detail ends{
    .device = 61, .peer_device = 62, .pid = 43210, .system_errno = 0, .needed = 7654321, .available = 1234567};

// As the library makes errors of a runtime that gives codes and nothing else: the vendor's.
Error from_vendor(Operation operation, acl::aclError code) {
  static const detail::RuntimeRecord record;
  return detail::refusal(record, operation, acl::Entry::aclrtIpcMemImportByKey, code, ends);
}

// As it makes them of one that says why: the host runtime.
detail::Cause cause_of_the_last_call;
Error from_host(Operation operation, acl::aclError code, const detail::Cause& cause, const Detail& detail = ends) {
  static const detail::RuntimeRecord record = [] {
    detail::RuntimeRecord made;
    made.extras.last_cause = []() noexcept -> const detail::Cause& { return cause_of_the_last_call; };
    return made;
  }();
  cause_of_the_last_call = cause;
  return detail::refusal(record, operation, acl::Entry::aclrtIpcMemImportByKey, code, detail);
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// Everything that must be in a text, however short.
std::vector<std::string> missing_in(const std::string& text, const Error& error) {
  std::vector<std::string> missing;
  const auto want = [&](const std::string& part) {
    if (!has(text, part)) missing.push_back(part);
  };
  want(std::string(name_of(error.operation())));
  want(std::string(name_of(error.kind())));
  want(std::to_string(error.acl_code()));
  want(std::string(name_of_acl_code(error.acl_code())));
  want(std::string(name_of(error.entry())));
  want("device 61");
  want("peer device 62");
  want("peer process 43210");
  want("needed 7654321");
  want("available 1234567");
  want(std::string(explain(error).remedy));
  return missing;
}

}  // namespace

TEST_CASE(
    "B083: a failure's text names its operation, the raw code and both ends, whatever failed with whatever code") {
  for (const Operation operation : all_operations()) {
    for (const acl::aclError code : all_codes()) {
      const Error error = from_vendor(operation, code);
      for (const std::string& text : {fmt::format("{}", error), fmt::format("{:l}", error)}) {
        INFO(text);
        CHECK(missing_in(text, error) == std::vector<std::string>{});
      }
    }
  }
}

TEST_CASE("B083: two operations never give the same text, nor do two codes of one operation") {
  for (const bool long_form : {false, true}) {
    std::map<std::string, std::string> seen;
    for (const Operation operation : all_operations()) {
      for (const acl::aclError code : all_codes()) {
        const std::string text = to_string(from_vendor(operation, code), long_form);
        const std::string what = std::string(name_of(operation)) + " " + std::to_string(code);
        const auto [at, is_new] = seen.emplace(text, what);
        INFO(what << " and " << at->second << " both say: " << text);
        CHECK(is_new);
      }
    }
  }
}

TEST_CASE("B083: two operations give different texts also where the host runtime says why") {
  std::set<std::string> seen;
  std::size_t count = 0;
  for (const Operation operation : all_operations()) {
    for (const Error::Reason reason : all_reasons()) {
      const Error error = from_host(operation, acl::code::rt_drv_internal, {.reason = reason});
      const std::string text = to_string(error);
      CHECK(has(text, name_of(reason)));
      CHECK(has(text, name_of(operation)));
      seen.insert(text);
      ++count;
    }
  }
  CHECK(seen.size() == count);
}

TEST_CASE("B083: the kind of a failure depends on operation and code alone") {
  for (const Operation operation : all_operations()) {
    for (const acl::aclError code : all_codes()) {
      const Error error = from_vendor(operation, code);
      Detail other = ends;
      other.pid = 1;
      static const detail::RuntimeRecord record;
      const Error again = detail::refusal(record, operation, acl::Entry::aclrtFree, code, other);
      CHECK(again.kind() == error.kind());
    }
  }
}

TEST_CASE("B083: kinds of the codes that decide a program's way do not change") {
  struct Row {
    Operation operation;
    acl::aclError code;
    Errc kind;
  };
  const Row rows[] = {
      {Operation::allocate, acl::code::bad_alloc, Errc::out_of_memory},
      {Operation::allocate, acl::code::rt_memory_allocation, Errc::out_of_memory},
      {Operation::allocate, acl::code::rt_param_invalid, Errc::invalid_argument},
      {Operation::allocate, acl::code::rt_context_null, Errc::no_device_context},
      {Operation::open_device, acl::code::rt_invalid_deviceid, Errc::no_such_device},
      {Operation::export_key, acl::code::rt_drv_internal, Errc::not_exportable},
      {Operation::export_key, acl::code::rt_feature_not_support, Errc::unsupported_by_runtime},
      {Operation::admit, acl::code::rt_no_permission, Errc::validation_disabled},
      {Operation::admit, acl::code::rt_drv_internal, Errc::refused},
      {Operation::import_key, acl::code::rt_drv_internal, Errc::refused},
      {Operation::import_key, acl::code::rt_no_permission, Errc::not_authorised},
      {Operation::close_import, acl::code::rt_drv_internal, Errc::refused},
      {Operation::copy_to_host, acl::code::uninitialize, Errc::runtime_gone},
      {Operation::import_key, 999999, Errc::refused},
  };
  for (const Row& row : rows) {
    INFO(name_of(row.operation) << " with " << row.code);
    CHECK(name_of(from_vendor(row.operation, row.code).kind()) == name_of(row.kind));
  }
}

TEST_CASE("a reason of the host runtime decides the kind, and its numbers are kept") {
  const Error error = from_host(Operation::import_key, acl::code::rt_drv_internal,
                                {.reason = Error::Reason::not_admitted, .pid = 777, .peer_device = 5}, {.device = 2});
  CHECK(error == Errc::not_authorised);
  CHECK(error.acl_code() == 507899);
  CHECK(error.reason() == Error::Reason::not_admitted);
  CHECK(error.detail().device == 2);
  CHECK(error.detail().peer_device == 5);
  CHECK(error.detail().pid == 777);

  const Error full =
      from_host(Operation::allocate, acl::code::bad_alloc,
                {.reason = Error::Reason::no_space, .system_errno = 28, .needed = 100, .available = 40}, {});
  CHECK(full == Errc::no_space);
  const std::string text = to_string(full);
  INFO(text);
  CHECK(has(text, "needed 100"));
  CHECK(has(text, "available 40"));
  CHECK(has(text, "system error 28"));
}

TEST_CASE("every reason of the host runtime is a kind of failure, and an injected one is what its code says") {
  for (const Error::Reason reason : all_reasons()) {
    INFO(name_of(reason));
    CHECK(name_of(detail::kind_of(reason)) != "unknown");
  }
  const Error injected = from_host(Operation::allocate, acl::code::bad_alloc, {.reason = Error::Reason::injected});
  CHECK(injected == Errc::out_of_memory);
  CHECK(injected.reason() == Error::Reason::injected);
}

TEST_CASE("B015: a process that is not admitted is told the number it has") {
  const Error error = from_host(Operation::import_key, acl::code::rt_drv_internal,
                                {.reason = Error::Reason::not_admitted, .pid = 104242}, {.device = 0});
  const std::string text = to_string(error);
  INFO(text);
  CHECK(error == Errc::not_authorised);
  CHECK(has(text, "104242"));
  CHECK(has(to_string(error, true), "getpid()"));
}

TEST_CASE("an error that devshare found itself shows no code, and no field that it does not fill") {
  const std::string text = to_string(Error(Errc::closed, Operation::admit));
  CHECK(text ==
        "cannot admit an importer: the object holds nothing any more (closed); "
        "use the object that the consuming step returned");
}

TEST_CASE("a refusal is printed as its error, and the long form is many lines") {
  struct Nothing {};
  const Refused<Nothing> refused(Error(Errc::stale_token, Operation::import_key), Nothing());
  CHECK(fmt::format("{}", refused) == fmt::format("{}", refused.error()));
  CHECK(fmt::format("{:l}", refused) == to_string(refused.error(), true));
  const std::string text = to_string(refused.error(), true);
  CHECK(has(text, "\n  rule: R18"));
  CHECK(has(text, "\n  perhaps: "));
  CHECK(has(text, "\n  do: "));
}

TEST_CASE("B091: every kind has a summary, causes and a remedy, for every operation") {
  for (const Errc kind : all_kinds()) {
    for (const Operation operation : all(Operation::none, Operation::use_mapping)) {
      INFO(name_of(kind) << ": " << name_of(operation));
      const Explanation text = explain(Error(kind, operation));
      CHECK_FALSE(text.summary.empty());
      CHECK_FALSE(text.remedy.empty());
      REQUIRE_FALSE(text.causes.empty());
      for (const std::string_view cause : text.causes) CHECK_FALSE(cause.empty());
    }
  }
}

TEST_CASE("B091: every kind has a text of its own in the catalogue, and no entry stands twice") {
  std::set<std::pair<Errc, Operation>> seen;
  std::set<std::string_view> summaries;
  for (const detail::CatalogueEntry& entry : detail::catalogue()) {
    INFO(name_of(entry.kind) << ": " << name_of(entry.operation));
    CHECK(seen.emplace(entry.kind, entry.operation).second);
    CHECK(summaries.insert(entry.text.summary).second);
  }
  for (const Errc kind : all_kinds()) {
    INFO(name_of(kind));
    CHECK(seen.count({kind, Operation::none}) == 1);
  }
}

TEST_CASE("B091: what a container, a limit or hidden devices cause is said with the option that mends it") {
  const auto whole = [](Errc kind) { return to_string(Error(kind, Operation::allocate), true); };
  CHECK(has(whole(Errc::no_space), "--shm-size"));
  CHECK(has(whole(Errc::no_space), "/dev/shm"));
  CHECK(has(whole(Errc::fd_limit), "ulimit -n"));
  CHECK(has(whole(Errc::fd_limit), "RLIMIT_NOFILE"));
  CHECK(has(whole(Errc::mapping_limit), "vm.max_map_count"));
  CHECK(has(whole(Errc::no_such_device), "ASCEND_RT_VISIBLE_DEVICES"));
  CHECK(has(whole(Errc::not_authorised), "bare_pid"));
  CHECK(has(whole(Errc::backend_unavailable), "seccomp"));
}

TEST_CASE("a kind that is none is explained as a refusal, not left without words") {
  const Explanation text = explain(Error(static_cast<Errc>(9999), Operation::allocate));
  CHECK_FALSE(text.causes.empty());
  CHECK_FALSE(text.remedy.empty());
}

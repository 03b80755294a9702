// SPDX-License-Identifier: Apache-2.0
// Exporters of handles that lie: the import of a token is refused in words, and nothing of it is held or counted
// (B029, B080).
#include "rogue_exporter.hpp"
#include "support/catch.hpp"
#include "support/host_session.hpp"
#include "support/huge_pages.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <utility>

using namespace devshare;
using namespace devshare::host;
using namespace devshare::test;

namespace {

struct Outcome {
  acl::aclError code;
  Reason reason;
};

// Imports from an exporter that bends its answer, and looks at what is left afterwards.
Outcome import_bent(std::function<void(Reply&, UniqueFd&)> bend) {
  HostSession session;
  REQUIRE(session->aclrtSetDevice(0) == 0);
  Exporter::Script script;
  script.memory = std::move(bend);
  const Exporter exporter(std::move(script));
  acl::aclrtDrvMemHandle handle = nullptr;
  const acl::aclError code = session->aclrtMemImportFromShareableHandle(exporter.token(), 0, &handle);
  const Outcome outcome{code, HostSession::reason()};
  const host::Counters left = host::counters();
  if (code != 0) {
    CHECK(handle == nullptr);
    CHECK(left.handles == 0);
    CHECK(left.handles_imported == 0);
    CHECK(left.descriptors == 0);
    CHECK(host::bytes_in_use(0) == 0);
    CHECK(left.peer_grants == 0);
  } else {
    CHECK(left.handles_imported == 1);
    CHECK(session->aclrtFreePhysical(handle) == 0);
  }
  return outcome;
}

bool is_refused(std::function<void(Reply&, UniqueFd&)> bend, Reason reason,
                acl::aclError code = acl::code::rt_drv_internal) {
  const Outcome outcome = import_bent(std::move(bend));
  CHECK(outcome.code == code);
  CHECK(outcome.reason == reason);
  return outcome.code == code && outcome.reason == reason;
}

}  // namespace

TEST_CASE("an exporter of handles by the book is served from, so that the others fail for what they do") {
  CHECK(import_bent([](Reply&, UniqueFd&) {}).code == 0);
}

TEST_CASE("B080 memory behind a token that is shorter than said, or may become so, is not taken") {
  CHECK(is_refused([](Reply&, UniqueFd& file) { file = memory_file(4095); }, Reason::protocol));
  CHECK(is_refused([](Reply& reply, UniqueFd&) { reply.size = 8192; }, Reason::protocol));
  CHECK(is_refused([](Reply&, UniqueFd& file) { file = memory_file(4096, 0); }, Reason::protocol));
  CHECK(is_refused([](Reply&, UniqueFd& file) { file = memory_file(4096, F_SEAL_SHRINK); }, Reason::protocol));
  CHECK(is_refused([](Reply&, UniqueFd& file) { file = UniqueFd(::open("/dev/zero", O_RDWR | O_CLOEXEC)); },
                   Reason::protocol));
}

TEST_CASE("B080 memory in huge pages that would be mapped over its neighbours is not taken") {
  const HugePages pool(1);
  if (!pool.why_not().empty()) DEVSHARE_SKIP(pool.why_not());
  const auto in_huge_pages = [](Reply& reply, UniqueFd& file) {
    file = UniqueFd(::memfd_create("rogue", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
    REQUIRE(::ftruncate(file.get(), HugePages::bytes) == 0);
    REQUIRE(::fcntl(file.get(), F_ADD_SEALS, all_seals) == 0);
    reply.size = HugePages::bytes;
    reply.page_size = HugePages::bytes;
  };
  CHECK(import_bent(in_huge_pages).code == 0);
  CHECK(is_refused(
      [&](Reply& reply, UniqueFd& file) {
        in_huge_pages(reply, file);
        reply.page_size = 4096;
      },
      Reason::protocol));
}

TEST_CASE("a token's answer that describes what cannot be is not taken") {
  CHECK(is_refused([](Reply& reply, UniqueFd&) { reply.device = 2; }, Reason::protocol));
  CHECK(is_refused([](Reply& reply, UniqueFd&) { reply.device = -2; }, Reason::protocol));
  CHECK(is_refused([](Reply& reply, UniqueFd&) { reply.offset = 4096; }, Reason::protocol));
  CHECK(is_refused([](Reply& reply, UniqueFd&) { reply.page_size = 8192; }, Reason::protocol));
  CHECK(is_refused([](Reply& reply, UniqueFd&) { reply.op = Op::import_memory; }, Reason::protocol));
  CHECK(is_refused([](Reply& reply, UniqueFd&) { reply.op = Op::admit; }, Reason::protocol));
  CHECK(is_refused([](Reply& reply, UniqueFd&) { ++reply.sequence; }, Reason::protocol));
  CHECK(is_refused([](Reply&, UniqueFd& file) { file = UniqueFd(); }, Reason::protocol));
}

TEST_CASE("a refusal by an exporter has the code that the handle calls have for its reason") {
  const auto refuse_as = [](Reason reason) {
    return [reason](Reply& reply, UniqueFd& file) {
      file = UniqueFd();
      reply.code = acl::code::rt_drv_internal;
      reply.reason = reason;
    };
  };
  for (const Reason unknown :
       {Reason::unknown_key, Reason::exporter_gone, Reason::wrong_token_kind, Reason::other_server}) {
    CHECK(is_refused(refuse_as(unknown), unknown, acl::code::rt_invalid_handle));
  }
  for (const Reason other : {Reason::not_admitted, Reason::admitted_too_early, Reason::user_refused}) {
    CHECK(is_refused(refuse_as(other), other));
  }
}

// SPDX-License-Identifier: Apache-2.0
#include "process.hpp"

#include "support/catch.hpp"
#include "support/isolation.hpp"
#include "support/sanitizers.hpp"

#include <dlfcn.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace conformance {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Read before the first case, which starts with a clean environment.
const bool on_a_board = variable("DEVSHARE_RUNTIME") == "ascend";
const std::string library = on_a_board ? "libascendcl.so" : variable("DEVSHARE_TEST_ACL");
const std::string profile_to_play = variable("DEVSHARE_TEST_PROFILE");

template <class R, class... A>
R missing(A...) {
  if constexpr (std::is_same_v<R, aclError>) {
    return absent;
  } else {
    return R{};
  }
}
template <class R, class... A>
void point_to_missing(R (*&entry)(A...)) {
  entry = &missing<R, A...>;
}

acl::Table loaded() {
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    std::fprintf(stderr, "no library to test: %s\n", ::dlerror());
    ::_exit(70);
  }
  acl::Table table;
#define CONFORMANCE_ENTRY(name, result, parameters, need, since)               \
  table.name = reinterpret_cast<decltype(table.name)>(::dlsym(handle, #name)); \
  if (table.name == nullptr) point_to_missing(table.name);
  DEVSHARE_ACL_ENTRIES(CONFORMANCE_ENTRY)
#undef CONFORMANCE_ENTRY
  return table;
}

// A process does not keep the lines of those that were there before it.
std::vector<int>& open_lines() {
  static std::vector<int> lines;
  return lines;
}

const std::string& known(const std::string& product) {
  for (const char* name : {"a2", "a3", "training", "310p", "950"}) {
    if (product == name) return product;
  }
  FAIL("DEVSHARE_TEST_PROFILE=" << product << ": a2, a3, training, 310p and 950 are products");
  return product;
}

constexpr std::size_t largest = 4096;
constexpr int patience_ms = devshare::test::under_sanitizer() ? 240'000 : 60'000;

}  // namespace

struct Process::Request {
  Step step = nullptr;
  std::size_t result_size = 0;
  std::byte arguments[largest] = {};
};

bool is_ours() { return !on_a_board; }

const std::string& profile() {
  static const std::string name = [] {
    if (!profile_to_play.empty()) return known(profile_to_play);
    if (is_ours()) return std::string("a2");
    const auto soc = Process().run([](const acl::Table& acl) {
      std::array<char, 64> text{};
      if (const char* const said = acl.aclrtGetSocName()) std::strncpy(text.data(), said, text.size() - 1);
      return text;
    });
    const std::string said = soc.data();
    for (const auto& [prefix, product] : {std::pair{"Ascend910_93", "a3"},
                                          {"Ascend910B", "a2"},
                                          {"Ascend910", "training"},
                                          {"Ascend310P", "310p"},
                                          {"Ascend950", "950"}}) {
      if (said.rfind(prefix, 0) == 0) return std::string(product);
    }
    FAIL("no product that the rules know: '" << said << "'; name the nearest one in DEVSHARE_TEST_PROFILE");
    return std::string();
  }();
  return name;
}

Process::Process(const Start& start) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) FAIL("no line to a process: " << errno);
  std::fflush(nullptr);
  number_ = start.number != 0 ? devshare::test::fork_as(start.number) : ::fork();
  if (number_ < 0) FAIL("no process: " << errno);
  if (number_ == 0) {
    for (const int line : open_lines()) ::close(line);
    ::close(ends[0]);
    serve(ends[1], start);
  }
  ::close(ends[1]);
  line_ = ends[0];
  open_lines().push_back(line_);
}

Process::~Process() {
  if (number_ < 0) return;
  const Request end;
  if (::send(line_, &end, offsetof(Request, arguments), MSG_NOSIGNAL) >= 0) {
    // Its answer is its end, which the line tells of.
    pollfd ended{line_, POLLIN, 0};
    ::poll(&ended, 1, patience_ms);
  }
  kill();
}

int Process::kill() {
  int status = 0;
  if (number_ < 0) return status;
  ::kill(number_, SIGKILL);
  ::waitpid(number_, &status, 0);
  ::close(line_);
  std::erase(open_lines(), line_);
  number_ = -1;
  return status;
}

void Process::exchange(Step what, const std::byte* arguments, std::size_t size, void* result, std::size_t result_size) {
  Request request{.step = what, .result_size = result_size};
  if (size > largest || result_size > largest) FAIL("a step of more bytes than fit");
  std::copy_n(arguments, size, request.arguments);
  pollfd answered{line_, POLLIN, 0};
  if (::send(line_, &request, offsetof(Request, arguments) + size, MSG_NOSIGNAL) < 0 ||
      ::poll(&answered, 1, patience_ms) != 1 ||
      ::recv(line_, result, result_size, 0) != static_cast<ssize_t>(result_size)) {
    const int status = kill();  // what ended it before, if anything did
    FAIL("a process of the test " << (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL
                                          ? "was ended by signal " + std::to_string(WTERMSIG(status))
                                      : WIFEXITED(status) ? "left with " + std::to_string(WEXITSTATUS(status))
                                                          : "did not answer"));
  }
}

void Process::serve(int line, const Start& start) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!devshare::test::under_sanitizer()) {
    for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) ::signal(signal, SIG_DFL);
  }
  if (is_ours()) ::setenv("DEVSHARE_HOST_PROFILE", profile().c_str(), 1);
  for (const auto& [name, value] : start.set) ::setenv(name.c_str(), value.c_str(), 1);
  const acl::Table acl = loaded();
  if (start.initialised && acl.aclInit(nullptr) != 0) ::_exit(71);
  if (start.initialised && start.device && acl.aclrtSetDevice(start.on) != 0) ::_exit(72);
  for (;;) {
    Request request;
    if (::recv(line, &request, sizeof(request), 0) < static_cast<ssize_t>(offsetof(Request, arguments))) ::_exit(73);
    if (request.step == nullptr) ::_exit(0);
    std::byte result[largest];
    request.step(acl, request.arguments, result);
    if (::send(line, result, request.result_size, MSG_NOSIGNAL) < 0) ::_exit(74);
  }
}

}  // namespace conformance

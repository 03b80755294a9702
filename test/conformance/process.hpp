// SPDX-License-Identifier: Apache-2.0
// One process that calls ACL, and is told what to call, one step at a time.
//
// It is forked by a program that never loads ACL itself, and loads the library of its own accord: whatever that does to
// the process, the test goes on. A step is a lambda without captures; it takes the calls, and values that can be copied
// byte by byte, and returns such a value. So a test reads from top to bottom, though it happens in several processes.
#pragma once

#include <devshare/acl/codes.hpp>
#include <devshare/acl/table.hpp>

#include <sys/types.h>

#include <array>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace conformance {

namespace acl = devshare::acl;
using acl::aclError;

// What a call that the library does not have returns.
inline constexpr aclError absent = -1;

// The library under test: the drop-in of this build or, with DEVSHARE_RUNTIME=ascend, what the machine has installed.
bool is_ours();
// The product it plays, or is: a2, a3, training, 310p, 950.
const std::string& profile();

struct Start {
  bool initialised = true;  // aclInit, and
  bool device = true;       // aclrtSetDevice(on)
  int on = 0;
  pid_t number = 0;  // the number that the process is to have; 0: any
  std::vector<std::pair<std::string, std::string>> set = {};
};

class Process {
 public:
  explicit Process(const Start& start = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  template <class F, class... A>
  auto run(F, const A&... arguments) {
    using R = std::invoke_result_t<F, const acl::Table&, const A&...>;
    static_assert((std::is_trivially_copyable_v<A> && ...) && std::is_trivially_copyable_v<R>);
    std::array<std::byte, (sizeof(A) + ... + 1)> bytes;
    [[maybe_unused]] std::size_t at = 0;
    ((std::memcpy(bytes.data() + at, &arguments, sizeof(A)), at += sizeof(A)), ...);
    R result;
    exchange(&step<F, A...>, bytes.data(), at, &result, sizeof(R));
    return result;
  }

  int kill();  // its status, as waitpid has it

 private:
  // The same address in both processes, since one was forked from the other.
  using Step = void (*)(const acl::Table& acl, const std::byte* arguments, std::byte* result);
  struct Request;

  template <class F, class... A>
  static void step(const acl::Table& acl, [[maybe_unused]] const std::byte* arguments, std::byte* result) {
    [[maybe_unused]] const auto next = [&arguments]<class T>(std::type_identity<T>) {
      T value;
      std::memcpy(&value, arguments, sizeof(T));
      arguments += sizeof(T);
      return value;
    };
    const std::tuple<A...> values{next(std::type_identity<A>{})...};
    const auto answer = std::apply([&acl](const A&... each) { return F{}(acl, each...); }, values);
    std::memcpy(result, &answer, sizeof(answer));
  }

  void exchange(Step what, const std::byte* arguments, std::size_t size, void* result, std::size_t result_size);
  [[noreturn]] static void serve(int line, const Start& start);

  pid_t number_ = -1;
  int line_ = -1;
};

}  // namespace conformance

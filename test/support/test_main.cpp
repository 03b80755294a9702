// SPDX-License-Identifier: Apache-2.0
// The main function of every Catch2 test program, compiled once.
//
// It gives each case its environment, and writes one line at each case's start and end to a file in
// DEVSHARE_TEST_RESULTS, from which test/count.py counts: a case that starts and never ends is a failed one, whatever
// killed its process.
#define CATCH_CONFIG_RUNNER
#define CATCH_CONFIG_NO_POSIX_SIGNALS  // sanitizers and the story harness see signals themselves
#include "catch.hpp"
#include "forks.hpp"
#include "temp_directory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

namespace devshare::test {
namespace {

std::optional<std::string> skip_reason;

class ResultFile {
 public:
  void open(const std::string& program) {
    const char* directory = std::getenv("DEVSHARE_TEST_RESULTS");
    if (directory == nullptr || *directory == '\0') return;
    const std::string path = std::string(directory) + "/" + program + "." + std::to_string(::getpid()) + ".tsv";
    fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    if (fd_ < 0) {
      std::cerr << "cannot write results to " << path << ": " << std::strerror(errno) << "\n";
      std::exit(70);
    }
  }

  // One write a line, so that a killed process leaves whole lines.
  void line(const char* what, std::string name) const {
    if (fd_ < 0) return;
    for (char& c : name) {
      if (c == '\n' || c == '\t') c = ' ';
    }
    const std::string text = std::string(what) + "\t" + name + "\n";
    if (::write(fd_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::abort();
  }

 private:
  int fd_ = -1;
};

ResultFile results;

void clear_environment() {
  std::vector<std::string> names{"ASCEND_RT_VISIBLE_DEVICES"};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const bool ours = text.rfind("DEVSHARE_", 0) == 0 && text.rfind("DEVSHARE_TEST_", 0) != 0;
    if (ours) names.push_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : names) ::unsetenv(name.c_str());
}

#if __has_include(<catch2/catch_all.hpp>)
using ListenerBase = Catch::EventListenerBase;
#else
using ListenerBase = Catch::TestEventListenerBase;
#endif

class CaseListener : public ListenerBase {
 public:
  using ListenerBase::ListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    ListenerBase::testCaseStarting(info);
    skip_reason.reset();
    clear_environment();
    state_.emplace("state");
    ::setenv("DEVSHARE_HOST_STATE", state_->path().c_str(), 1);
    // The same cases over again, through the drop-in, or as an older kernel would play them.
    if (const char* runtime = std::getenv("DEVSHARE_TEST_RUNTIME")) ::setenv("DEVSHARE_RUNTIME", runtime, 1);
    if (const char* identity = std::getenv("DEVSHARE_TEST_IDENTITY")) ::setenv("DEVSHARE_HOST_IDENTITY", identity, 1);
    name_ = info.name;
    results.line("start", name_);
  }

  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    if (!stats.totals.assertions.allOk()) {
      results.line("fail", name_);
    } else if (skip_reason) {
      results.line("skip", name_ + " (" + *skip_reason + ")");
    } else if (stats.totals.assertions.total() == 0) {
      results.line("fail", name_ + " (it checked nothing)");
      std::cerr << name_ << ": checked nothing\n";
      checked_nothing = true;
    } else {
      results.line("pass", name_);
    }
    state_.reset();
    ListenerBase::testCaseEnded(stats);
  }

  static bool checked_nothing;

 private:
  std::string name_;
  std::optional<TempDirectory> state_;
};

bool CaseListener::checked_nothing = false;

}  // namespace

void mark_skipped(const std::string& reason) {
  skip_reason = reason;
  std::cout << "skipped: " << reason << "\n";
}

}  // namespace devshare::test

using devshare::test::CaseListener;
CATCH_REGISTER_LISTENER(CaseListener)

int main(int argc, char** argv) {
  devshare::test::let_threads_rest_at_forks();
  const char* given = std::getenv("DEVSHARE_TEST_NAME");
  const std::string program = given != nullptr ? given : std::string(argv[0]).substr(std::string(argv[0]).rfind('/') + 1);
  devshare::test::results.open(program);
  const int failed = Catch::Session().run(argc, argv);
  if (failed != 0) return failed < 255 ? failed : 255;
  return CaseListener::checked_nothing ? 1 : 0;
}

// SPDX-License-Identifier: Apache-2.0
// Runs the benchmarks and prints their table.
//
//   devshare_bench [--rounds N] [--patience SECONDS] [PART...]
//
// Each row is a ratio of medians over N alternating rounds, or an exact count. A row whose control left 0.95..1.05 is
// void: run it again on a machine that does nothing else. Exits with 1 when a goal was missed.
#include "parts.hpp"
#include "process.hpp"
#include "quiet.hpp"
#include "rounds.hpp"

#include <fmt/format.h>

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace devshare::bench {
namespace {

struct Part {
  std::string_view name;
  std::vector<Row> (*run)();
};
constexpr Part parts[] = {
    {"calls", call_rows},
    {"shares", share_rows},
    {"handles", handle_rows},
    {"pages", page_rows},
    {"streams", stream_rows},
    {"copies", copy_rows},
    {"warm-copies", warm_copy_rows},
    {"many-exports", many_exports_rows},
    {"many-importers", many_importers_rows},
    {"repeated-import", repeated_import_rows},
    {"lending", lending_rows},
    {"lending-wake", lending_wake_rows},
    {"lending-crowd", lending_crowd_rows},
    {"headers", header_rows},
};

// Runs a part in a child; its rows come back as lines, the last is what others used of the processors.
std::vector<Row> run_apart(const Part& part, double* others) {
  using Text = std::array<char, 512>;
  const auto text = [](const std::string& line) {
    Text out{};
    std::memcpy(out.data(), line.data(), std::min(line.size(), out.size() - 1));
    return out;
  };
  std::fprintf(stderr, "%s\n", std::string(part.name).c_str());
  const Process process([&](const Line& line) {
    for (const Row& row : part.run()) line.send(text(to_line(row)));
    line.send(text("used by others\t" + std::to_string(others_used())));
    line.receive<char>();  // until the end
  });
  std::vector<Row> rows;
  for (;;) {
    const std::string line = process.line().receive<Text>().data();
    if (line.starts_with("used by others\t")) {
      *others = std::max(*others, std::strtod(line.c_str() + line.find('\t'), nullptr));
      return rows;
    }
    rows.push_back(from_line(line));
  }
}

std::string value_in(const char* file, const char* name) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name)) return line.substr(std::min(line.find(':') + 2, line.size()));
  }
  return "?";
}

std::string machine() {
  utsname system{};
  ::uname(&system);
  return fmt::format("{} processors ({}), Linux {}, g++ {}", ::sysconf(_SC_NPROCESSORS_ONLN),
                     value_in("/proc/cpuinfo", "model name"), system.release, __VERSION__);
}

// A state directory of its own, so that no other process's devices are counted with.
class OwnState {
 public:
  OwnState() {
    if (::mkdtemp(path_) == nullptr) give_up("mkdtemp");
    ::setenv("DEVSHARE_HOST_STATE", path_, 1);
    ::setenv("DEVSHARE_RUNTIME", "host", 1);
  }
  ~OwnState() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  OwnState(const OwnState&) = delete;
  OwnState& operator=(const OwnState&) = delete;

 private:
  char path_[32] = "/tmp/devshare-bench-XXXXXX";
};

int usage_error() {
  std::fprintf(stderr, "usage: devshare_bench [--rounds N] [--patience SECONDS] [PART...]\nparts:");
  for (const Part& part : parts) std::fprintf(stderr, " %s", std::string(part.name).c_str());
  std::fprintf(stderr, "\n");
  return 2;
}

bool take_number(int argc, char** argv, int* i, const char* name, int* value) {
  if (std::strcmp(argv[*i], name) != 0 || *i + 1 >= argc) return false;
  const std::string_view text = argv[++*i];
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc{} && end == text.data() + text.size();
}

int run(int argc, char** argv) {
  std::vector<std::string_view> wanted;
  int patience = static_cast<int>(options.patience_s);
  for (int i = 1; i < argc; ++i) {
    if (take_number(argc, argv, &i, "--rounds", &options.rounds)) continue;
    if (take_number(argc, argv, &i, "--patience", &patience)) continue;
    if (std::none_of(std::begin(parts), std::end(parts), [&](const Part& part) { return part.name == argv[i]; })) {
      return usage_error();
    }
    wanted.emplace_back(argv[i]);
  }
  options.patience_s = patience;
  if (options.rounds < 1) return usage_error();

  const OwnState state;
  std::vector<Row> rows;
  double others = 0;
  for (const Part& part : parts) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), part.name) == wanted.end()) continue;
    for (Row& row : run_apart(part, &others)) rows.push_back(std::move(row));
  }
  std::printf("%s\n%s; ratios of medians over %d rounds; others used up to %.0f %% of a processor\n",
              to_markdown(rows).c_str(), machine().c_str(), options.rounds, others * 100);
  const bool missed = std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.verdict == Verdict::missed; });
  return missed ? 1 : 0;
}

}  // namespace
}  // namespace devshare::bench

int main(int argc, char** argv) { return devshare::bench::run(argc, argv); }

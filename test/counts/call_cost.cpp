// SPDX-License-Identifier: Apache-2.0
#include "call_cost.hpp"

#include "support/child.hpp"
#include "support/sanitizers.hpp"
#include "support/temp_directory.hpp"

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>

namespace devshare::test {
namespace {

constexpr long repetitions = 1000;  // as in the probe; the rest of a division by it is the way into the loop and out

struct Case {
  const char* name;
  int table_calls;
  bool inlined;
  bool failing;
};
constexpr Case cases[] = {
    {"bare_pid", 1, true, false},        {"allocate", 4, true, false},         {"copy_in", 2, true, false},
    {"copy_out", 2, true, false},        {"admit", 1, false, false},           {"bare_pid_failing", 1, true, true},
    {"allocate_failing", 2, true, true}, {"copy_in_failing", 2, true, true},
};

// The instructions of each dump, by the name the probe gave it. The file ends with the sum of all it lists.
std::map<std::string, long> read_dumps(const std::string& directory) {
  std::map<std::string, long> instructions;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::ifstream file(entry.path());
    std::string name;
    for (std::string line; std::getline(file, line);) {
      static const std::string trigger = "desc: Trigger: Client Request: ";
      if (line.rfind(trigger, 0) == 0) name = line.substr(trigger.size());
      for (const char* sum : {"totals: ", "summary: "}) {
        if (line.rfind(sum, 0) == 0 && !name.empty()) instructions[name] = std::stol(line.substr(line.find(' ')));
      }
    }
  }
  return instructions;
}

std::map<std::string, long> read_allocations(const std::string& output) {
  std::map<std::string, long> allocations;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    long count = 0;
    if (words >> name >> count) allocations[name] = count;
  }
  return allocations;
}

}  // namespace

CallCosts measure_call_costs() {
  const TempDirectory directory("callgrind");
  const ChildEnd end = run_program({"valgrind", "--tool=callgrind", "--collect-atstart=no", "-q",
                                    "--callgrind-out-file=" + directory.file("dump"), DEVSHARE_CALL_COST_PROBE},
                                   {.limit = std::chrono::seconds(120), .set = {{"DEVSHARE_RUNTIME", DEVSHARE_EMPTY_ACL}}});
  CallCosts costs;
  if (!end.good()) {
    costs.problem = end.in_words();
    return costs;
  }
  const auto instructions = read_dumps(directory.path());
  const auto allocations = read_allocations(end.output);
  for (const Case& one : cases) {
    const std::string name = one.name;
    const auto by_hand = instructions.find(name + ".by_hand");
    const auto wrapped = instructions.find(name + ".wrapped");
    const auto allocated = allocations.find(name + ".wrapped");
    if (by_hand == instructions.end() || wrapped == instructions.end() || allocated == allocations.end()) {
      costs.problem = "callgrind left nothing for " + name + ":\n" + end.output;
      return costs;
    }
    costs.cases.push_back({name, one.table_calls, one.inlined, one.failing, by_hand->second / repetitions,
                           wrapped->second / repetitions, allocated->second});
  }
  return costs;
}

std::string why_no_call_costs() {
  if (under_sanitizer()) return "a sanitizer adds instructions of its own";
  if (!DEVSHARE_OPTIMISED) return "the library is built without optimisation";
  if (std::string_view(DEVSHARE_CALL_COST_PROBE).empty()) return "valgrind was not installed when this was built";
  return run_program({"valgrind", "--version"}).good() ? "" : "valgrind is not installed";
}

}  // namespace devshare::test

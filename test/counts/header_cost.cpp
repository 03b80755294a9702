// SPDX-License-Identifier: Apache-2.0
#include "header_cost.hpp"

#include "support/temp_directory.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

namespace devshare::test {
namespace {

// Runs a command with its output, errors included, in a file. -1 when it could not run, else its exit status.
int run(const std::vector<std::string>& command, const std::string& output, rusage* used) {
  std::vector<char*> arguments;
  for (const std::string& part : command) arguments.push_back(const_cast<char*>(part.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return -1;
  if (child == 0) {
    const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(file, STDOUT_FILENO);
    ::dup2(file, STDERR_FILENO);
    ::setenv("CCACHE_DISABLE", "1", 1);  // a cache that goes by the name of g++ would be measured in its place
    ::unsetenv("MALLOC_PERTURB_");       // Meson's: it has memory written that the compiler would not touch
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  int status = 0;
  while (::wait4(child, &status, 0, used) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The list of a Makefile rule: "t.o: a.cpp b.hpp \\\n c.hpp".
std::vector<std::string> prerequisites(const std::string& rule) {
  std::istringstream words(rule.substr(std::min(rule.find(':') + 1, rule.size())));
  std::vector<std::string> files;
  for (std::string word; words >> word;) {
    if (word != "\\") files.push_back(word);
  }
  return files;
}

}  // namespace

HeaderCost cost_of_including(const std::vector<std::string>& includes, bool lines_only) {
  const TempDirectory directory("headers");
  const std::string source = directory.file("t.cpp");
  const std::string output = directory.file("out");
  {
    std::ofstream file(source);
    for (const std::string& include : includes) file << "#include <" << include << ">\n";
    file << "int nothing() { return 0; }\n";
  }
  HeaderCost cost;
  const std::vector<std::string> base{DEVSHARE_GXX, "-std=c++20", "-I" DEVSHARE_INCLUDE, source};
  const auto with = [&](const std::vector<std::string>& more, rusage* used) {
    std::vector<std::string> command = base;
    command.insert(command.end(), more.begin(), more.end());
    const int status = run(command, output, used);
    if (status != 0) cost.problem = "g++ ended with " + std::to_string(status) + ":\n" + text_of(output);
    return status == 0;
  };

  rusage used{};
  if (!with({"-E", "-P", "-o", directory.file("t.i")}, &used)) return cost;
  const std::string preprocessed = text_of(directory.file("t.i"));
  cost.lines = std::count(preprocessed.begin(), preprocessed.end(), '\n');
  if (!with({"-M"}, &used)) return cost;
  cost.headers = prerequisites(text_of(output));
  if (lines_only) return cost;
  if (!with({"-O0", "-c", "-o", directory.file("t.o")}, &used)) return cost;
  cost.peak_mib = static_cast<double>(used.ru_maxrss) / 1024;
  return cost;
}

int gxx_version() {
  if (std::string_view(DEVSHARE_GXX).empty()) return 0;
  const TempDirectory directory("gxx");
  rusage used{};
  if (run({DEVSHARE_GXX, "-dumpversion"}, directory.file("out"), &used) != 0) return 0;
  return std::atoi(text_of(directory.file("out")).c_str());
}

}  // namespace devshare::test

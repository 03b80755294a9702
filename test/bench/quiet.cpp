// SPDX-License-Identifier: Apache-2.0
#include "quiet.hpp"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>

namespace devshare::bench {
namespace {

double ticks_to_seconds(double ticks) { return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK)); }

double monotonic() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// All but idle and waiting for disks.
double time_of_all() {
  std::ifstream file("/proc/stat");
  std::string name;
  file >> name;
  double sum = 0;
  for (int field = 0; field < 8; ++field) {
    double ticks = 0;
    file >> ticks;
    if (field != 3 && field != 4) sum += ticks;
  }
  return ticks_to_seconds(sum);
}

// Of one process and of the children it has waited for, if it belongs to the group.
double time_of_process(const char* pid, pid_t group) {
  std::ifstream file(std::string("/proc/") + pid + "/stat");
  std::string line;
  std::getline(file, line);
  const auto after_name = line.rfind(')');
  if (after_name == std::string::npos) return 0;
  std::istringstream fields(line.substr(after_name + 2));
  std::string state;
  long parent = 0;
  long process_group = 0;
  fields >> state >> parent >> process_group;
  if (process_group != group) return 0;
  std::string skipped;
  for (int i = 0; i < 8; ++i) fields >> skipped;
  double user = 0;
  double system = 0;
  double waited_user = 0;
  double waited_system = 0;
  fields >> user >> system >> waited_user >> waited_system;
  return ticks_to_seconds(user + system + waited_user + waited_system);
}

double time_of_group() {
  const pid_t group = ::getpgrp();
  double sum = 0;
  DIR* const directory = ::opendir("/proc");
  if (directory == nullptr) return 0;
  while (const dirent* entry = ::readdir(directory)) {
    if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9') sum += time_of_process(entry->d_name, group);
  }
  ::closedir(directory);
  return sum;
}

}  // namespace

Usage usage() { return {monotonic(), time_of_all(), time_of_group()}; }

double used_by_others(const Usage& before, const Usage& after) {
  const double others = (after.all - before.all) - (after.ours - before.ours);
  return std::max(0.0, others / std::max(1e-3, after.at - before.at));
}

double wait_for_quiet(double share, double limit_s) {
  const double begin = monotonic();
  while (monotonic() - begin < limit_s) {
    const Usage before = usage();
    ::usleep(500'000);
    if (used_by_others(before, usage()) < share) break;
  }
  return monotonic() - begin;
}

}  // namespace devshare::bench

// SPDX-License-Identifier: Apache-2.0
// The names at which exporters listen: exclusive, found by their number alone, gone with their owner (B017, B062,
// B072).
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/temp_directory.hpp"

#include "host/endpoint.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

using namespace devshare::host;
using namespace devshare::test;

namespace {

int connect_result(std::uint64_t name, const std::string& directory) {
  const UniqueFd socket = new_client_socket(1000);
  return connect_to(socket.get(), name, directory, std::chrono::steady_clock::now() + std::chrono::seconds(1));
}

std::ptrdiff_t count_entries(const std::string& directory) {
  return std::distance(std::filesystem::directory_iterator(directory), std::filesystem::directory_iterator());
}

std::string spelt(std::uint64_t name) {
  char text[32];
  std::snprintf(text, sizeof text, "devshare.%016llx", static_cast<unsigned long long>(name));
  return text;
}

}  // namespace

TEST_CASE("an endpoint is reached by its number, as an abstract name and as a path") {
  const TempDirectory directory;
  for (const std::string& place : {std::string(), directory.file("sockets")}) {
    CAPTURE(place);
    Endpoint first;
    Endpoint second;
    REQUIRE(first.open(place) == 0);
    REQUIRE(second.open(place) == 0);
    CHECK(first.name() != second.name());
    CHECK(connect_result(first.name(), place) == 0);
    CHECK(connect_result(second.name(), place) == 0);
    const std::uint64_t gone = first.name();
    first.close();
    const int refused = connect_result(gone, place);
    CHECK((refused == ECONNREFUSED || refused == ENOENT));
    CHECK(connect_result(second.name(), place) == 0);
  }
}

TEST_CASE("a socket path is its user's alone and is unlinked by its owner") {
  const TempDirectory directory;
  const std::string place = directory.file("sockets");
  const mode_t before = ::umask(0);  // the mode must not depend on it
  {
    Endpoint endpoint;
    REQUIRE(endpoint.open(place) == 0);
    struct stat status {};
    REQUIRE(::stat(place.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0700);
    REQUIRE(::stat((place + "/" + spelt(endpoint.name())).c_str(), &status) == 0);
    CHECK(S_ISSOCK(status.st_mode));
    CHECK((status.st_mode & 0777) == 0600);
  }
  ::umask(before);
  CHECK(count_entries(place) == 0);
}

TEST_CASE("B072 a directory that is not ours alone, is a link, or whose path is too long is refused") {
  const TempDirectory directory;
  Endpoint endpoint;
  const std::string open_to_group = directory.file("group");
  REQUIRE(::mkdir(open_to_group.c_str(), 0700) == 0);
  REQUIRE(::chmod(open_to_group.c_str(), 0710) == 0);
  CHECK(endpoint.open(open_to_group) == EACCES);
  const std::string link = directory.file("link");
  REQUIRE(::symlink(directory.path().c_str(), link.c_str()) == 0);
  CHECK(endpoint.open(link) != 0);
  CHECK(endpoint.open(directory.file(std::string(120, 'x'))) == ENAMETOOLONG);
  CHECK(endpoint.open(directory.file("missing/deeper")) == ENOENT);
  CHECK(endpoint.socket() == -1);
}

TEST_CASE("B072 only stale sockets of ours are reclaimed, nothing else that lies there") {
  const TempDirectory directory;
  const std::string place = directory.file("sockets");
  const ChildEnd end = in_child([&] {
    Endpoint endpoint;
    demand(endpoint.open(place) == 0, "the child listens");
    ::kill(::getpid(), SIGKILL);
  });
  CHECK(end.signal == SIGKILL);
  REQUIRE(count_entries(place) == 1);
  std::ofstream(place + "/devshare.0123456789abcdef") << "a file under such a name";
  std::ofstream(place + "/other") << "somebody's";
  Endpoint live;
  REQUIRE(live.open(place) == 0);
  CHECK(count_entries(place) == 3);
  Endpoint next;
  REQUIRE(next.open(place) == 0);
  CHECK(connect_result(live.name(), place) == 0);
  CHECK(std::filesystem::exists(place + "/other"));
  CHECK(std::filesystem::exists(place + "/devshare.0123456789abcdef"));
}

TEST_CASE("B072 fifty processes that start in one directory at once do not unlink one another") {
  const TempDirectory directory;
  const std::string place = directory.file("sockets");
  constexpr int many = 50;
  int names[2];
  int end[2];
  REQUIRE(::pipe2(names, O_CLOEXEC) == 0);
  REQUIRE(::pipe2(end, O_CLOEXEC) == 0);
  std::vector<pid_t> children;
  for (int i = 0; i < many; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(end[1]);
      Endpoint endpoint;
      const std::uint64_t name = endpoint.open(place) == 0 ? endpoint.name() : 0;
      bool told = ::write(names[1], &name, sizeof name) == sizeof name;
      char byte = 0;
      told = told && ::read(end[0], &byte, 1) == 0;  // until the parent closes its end
      endpoint.close();
      ::_exit(told ? 0 : 1);
    }
    children.push_back(child);
  }
  std::set<std::uint64_t> seen;
  for (int i = 0; i < many; ++i) {
    std::uint64_t name = 0;
    REQUIRE(::read(names[0], &name, sizeof name) == sizeof name);
    seen.insert(name);
  }
  CHECK(seen.size() == many);
  CHECK(seen.count(0) == 0);
  CHECK(count_entries(place) == many);
  for (const std::uint64_t name : seen) CHECK(connect_result(name, place) == 0);
  ::close(end[1]);
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  CHECK(count_entries(place) == 0);
  for (const int descriptor : {names[0], names[1], end[0]}) ::close(descriptor);
}

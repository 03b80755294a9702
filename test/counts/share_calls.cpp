// SPDX-License-Identifier: Apache-2.0
#include "share_calls.hpp"

#include "support/child.hpp"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace devshare::test {
namespace {

constexpr int shares = 200;   // counted, so that a call that is made only now and then counts too
constexpr int warm_up = 3;
constexpr std::size_t size = 2 << 20;

// The two processes of a share and the line between them, which is not counted.
struct Line {
  int exporter = -1;
  int importer = -1;

  Line() {
    int ends[2];
    demand(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "a socket pair");
    exporter = as_uncounted(ends[0]);
    importer = as_uncounted(ends[1]);
    demand(exporter >= 0 && importer >= 0, "descriptors of 900 and more");
  }
};

template <class T>
void send(int line, const T& value) {
  demand(::send(line, &value, sizeof(value), MSG_NOSIGNAL) == sizeof(value), "sends");
}
template <class T>
bool receive(int line, T* value) {
  return ::recv(line, value, sizeof(*value), 0) == sizeof(*value);
}

// A and B on both ends of a line: `a` runs in this process, `b` in a child, until both return. B introduces itself first.
void in_two_processes(bench::Way& way, const std::function<void(int line)>& a, const std::function<void(int line)>& b) {
  ::prctl(PR_SET_NAME, "A");
  const Line line;
  const pid_t importer = ::fork();
  demand(importer >= 0, "forks");
  if (importer == 0) {
    ::prctl(PR_SET_NAME, "B");
    ::close(line.exporter);
    send(line.importer, way.introduce());
    b(line.importer);
    ::_exit(0);
  }
  ::close(line.importer);
  std::int32_t pid = 0;
  demand(receive(line.exporter, &pid), "B introduces itself");
  way.meet(pid);
  a(line.exporter);
  ::close(line.exporter);
  int status = 0;
  demand(::waitpid(importer, &status, 0) == importer && status == 0, "B ends well");
}

void wait_for_answer(int line) {
  char done = 0;
  demand(receive(line, &done), "B has done its part");
}

void share_once(bench::Way& way, int line) {
  send(line, way.share(size));
  wait_for_answer(line);
  way.end();
}

}  // namespace

CallsOfShares calls_of_shares(MakeWay by, bench::Touch touch) {
  return {shares, count_calls([by, touch] {
    const auto way = by(touch);
    const auto exporter = [&way](int line) {
      for (int i = 0; i < warm_up; ++i) share_once(*way, line);
      begin_counting();
      for (int i = 0; i < shares; ++i) share_once(*way, line);
      end_counting();
    };
    const auto importer = [&way](int line) {
      for (bench::Message message; receive(line, &message);) {
        way->use(message, size);
        send(line, 'k');
      }
    };
    in_two_processes(*way, exporter, importer);
  })};
}

CountedCalls calls_beside_an_import(const BesideAnImport& part) {
  return count_calls([&part] {
    const auto way = bench::by_devshare(bench::Touch::copies);
    const auto exporter = [&way](int line) {
      send(line, way->share(size));
      send(line, way->share(size));
      wait_for_answer(line);
      way->end();
    };
    const auto importer = [&part](int line) {
      const auto device = Runtime::open().value().device(DeviceId{0}).value();
      bench::Message messages[2];
      for (auto& message : messages) demand(receive(line, &message), "a ticket");
      const auto first = ReceivedTicket::decode(messages[0]).value();
      const auto second = ReceivedTicket::decode(messages[1]).value();
      {
        const auto open = ImportedMapping::open(first, device).value();
        part(device, first, second);
      }
      send(line, 'k');
    };
    in_two_processes(*way, exporter, importer);
  });
}

}  // namespace devshare::test

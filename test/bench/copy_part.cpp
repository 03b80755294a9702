// SPDX-License-Identifier: Apache-2.0
// Cold copies of 64 MiB: the first one into fresh memory, or out of a fresh import, which the host runtime makes through
// the descriptor.
#include "by_hand/sealed_memfd.hpp"
#include "parts.hpp"
#include "process.hpp"
#include "rounds.hpp"
#include "way.hpp"

#include <devshare/devshare.hpp>
#include <devshare/format.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace devshare::bench {
namespace {

constexpr std::size_t size = std::size_t{64} << 20;
constexpr std::size_t cold_copies = 1;  // in a turn

template <class R>
auto must(R result, const char* what) {
  if (!result) give_up(fmt::format("{}: {}", what, detail::plain_error(result.error())));
  if constexpr (!std::is_void_v<typename R::value_type>) return *std::move(result);
}

std::vector<std::byte> pattern() {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 >> 5);
  return bytes;
}

// The time of `timed` alone, with what it needs made before and ended after, the median of so many.
template <class Make, class Timed, class End>
double median_of(std::size_t times, Make make, Timed timed, End end) {
  std::vector<double> all;
  for (std::size_t i = 0; i < times; ++i) {
    auto made = make();
    const double begin = now_ns();
    timed(made);
    all.push_back(now_ns() - begin);
    end(std::move(made));
  }
  return median(std::move(all));
}

// The memfd behind the one block of device memory of this process, as a path that others may open.
Message path_of_memory() {
  for (int descriptor = 0; descriptor < 1024; ++descriptor) {
    struct stat status {};
    if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (static_cast<std::size_t>(status.st_size) < size) continue;
    const std::string path = fmt::format("/proc/{}/fd/{}", ::getpid(), descriptor);
    Message message{};
    std::memcpy(message.data(), path.c_str(), path.size() + 1);
    return message;
  }
  give_up("no descriptor holds the memory");
}

// Memory of another process, as a ticket and, past all checks, as a descriptor of the same bytes.
struct Exporter {
  Process process;
  ReceivedTicket ticket;
  int memfd;

  explicit Exporter(const std::vector<std::byte>& content)
      : process([&](const Line& line) { share(line, content); }), ticket(introduce()), memfd(open_memory()) {}

 private:
  static void share(const Line& line, const std::vector<std::byte>& content) {
    const Device device = must(must(Runtime::open(), "the runtime").device(DeviceId{0}), "the device");
    auto memory = must(DeviceMemory::allocate(device, size), "allocating");
    must(copy_to_device(device, memory.bytes(), content), "copying in");
    auto key = must(export_key(std::move(memory)), "exporting");
    const auto importer = BarePid::from_peer_message(line.receive<std::int32_t>());
    const auto issued = must(key.admit(importer), "admitting");
    Message message;
    std::memcpy(message.data(), issued.bytes().data(), message.size());
    line.send(message);
    line.send(path_of_memory());
    line.receive<char>();  // until the end
  }
  int open_memory() const {
    const Message path = process.line().receive<Message>();
    const int opened = ::open(reinterpret_cast<const char*>(path.data()), O_RDWR | O_CLOEXEC);
    if (opened < 0) give_up("opening the memory of the exporter");
    return opened;
  }
  ReceivedTicket introduce() const {
    process.line().send(must(must(Runtime::open(), "the runtime").bare_pid(), "the bare pid").to_message());
    return must(ReceivedTicket::decode(process.line().receive<Message>()), "decoding");
  }
};

void measure_cold_in(const Device& device, const std::vector<std::byte>& source, std::vector<Row>* rows) {
  const auto bare = [&] {
    return median_of(cold_copies, [] { return make_sealed_memfd(size); },
                     [&](int memfd) { write_at(memfd, 0, source.data(), size); }, [](int memfd) { ::close(memfd); });
  };
  const auto mapped = [&] {
    std::byte* view = nullptr;
    return median_of(cold_copies, [] { return make_sealed_memfd(size); },
                     [&](int memfd) {
                       view = map_whole(memfd, size);
                       std::memcpy(view, source.data(), size);
                     },
                     [&](int memfd) {
                       unmap_whole(view, size);
                       ::close(memfd);
                     });
  };
  const auto ours = [&] {
    return median_of(cold_copies, [&] { return must(DeviceMemory::allocate(device, size), "allocating"); },
                     [&](DeviceMemory& memory) { must(copy_to_device(device, memory.bytes(), source), "copying in"); },
                     [](DeviceMemory memory) { must(std::move(memory).close(), "freeing"); });
  };
  const auto figures = alternate({{"cold in: pwrite", bare}, {"cold in: pwrite, again", bare},
                                  {"cold in: devshare", ours}, {"cold in: map and memcpy", mapped}});
  const Ratio control = ratio(figures[1], figures[0]);
  rows->push_back(judge("first copy in, pwrite / devshare", figures[0], figures[2], Goal::at_least, 0.90, control));
  rows->push_back(judge("first copy in, map and memcpy / devshare", figures[3], figures[2], Goal::at_least, 8, control));
}

void measure_cold_out(const Device& device, const Exporter& exporter, const std::vector<std::byte>& expected,
                      std::vector<Row>* rows) {
  std::vector<std::byte> target(size);
  const auto bare = [&] {
    return median_of(cold_copies, [&] { return exporter.memfd; },
                     [&](int memfd) { read_at(memfd, 0, target.data(), size); }, [](int) {});
  };
  const auto mapped = [&] {
    std::byte* view = nullptr;
    return median_of(cold_copies, [&] { return exporter.memfd; },
                     [&](int memfd) {
                       view = map_whole(memfd, size);
                       std::memcpy(target.data(), view, size);
                     },
                     [&](int) { unmap_whole(view, size); });
  };
  const auto ours = [&] {
    return median_of(cold_copies, [&] { return must(ImportedMapping::open(exporter.ticket, device), "importing"); },
                     [&](ImportedMapping& mapping) { must(copy_to_host(device, target, mapping.bytes()), "copying out"); },
                     [](ImportedMapping mapping) { must(std::move(mapping).close(), "closing"); });
  };
  const auto figures = alternate({{"cold out: pread", bare}, {"cold out: pread, again", bare},
                                  {"cold out: devshare", ours}, {"cold out: map and memcpy", mapped}});
  if (target != expected) give_up("the bytes are not those that were written");
  const Ratio control = ratio(figures[1], figures[0]);
  rows->push_back(judge("first copy out, pread / devshare", figures[0], figures[2], Goal::at_least, 0.90, control));
  rows->push_back({"first copy out, map and memcpy / devshare", fmt::format("{:.2f}", ratio(figures[3], figures[2]).value),
                   "–", Verdict::for_information, "as above"});
}

}  // namespace

std::vector<Row> copy_rows() {
  const std::vector<std::byte> source = pattern();
  const Exporter exporter(source);
  pin_to(0);
  const Device device = must(must(Runtime::open(), "the runtime").device(DeviceId{0}), "the device");
  std::vector<Row> rows;
  measure_cold_in(device, source, &rows);
  measure_cold_out(device, exporter, source, &rows);
  return rows;
}

}  // namespace devshare::bench

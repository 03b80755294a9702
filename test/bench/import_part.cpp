// SPDX-License-Identifier: Apache-2.0
// Imports alone: from an exporter that has thousands, by many importers at once, of a key that is open already.
#include "by_hand/by_hand.hpp"
#include "parts.hpp"
#include "process.hpp"
#include "rounds.hpp"
#include "way.hpp"

#include <devshare/devshare.hpp>
#include <devshare/format.hpp>

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace devshare::bench {
namespace {

constexpr std::size_t size = 4096;

template <class R>
auto must(R result, const char* what) {
  if (!result) give_up(fmt::format("{}: {}", what, detail::plain_error(result.error())));
  if constexpr (!std::is_void_v<typename R::value_type>) return *std::move(result);
}

// A process that shares so many blocks in each of the ways, with every process that introduces itself.
class Exporter {
 public:
  // On one processor, or where the kernel puts it. So many importers send their numbers in each of the ways first, then
  // all messages come back.
  Exporter(std::vector<std::unique_ptr<Way>> ways, std::size_t blocks, std::size_t importers,
           std::optional<int> processor)
      : ways_(std::move(ways)), blocks_(blocks), process_([=, this](const Line& line) {
          if (processor) pin_to(*processor);
          share(line, importers);
        }) {}

  void admit(const std::vector<std::int32_t>& numbers) const {
    for (const std::int32_t number : numbers) process_.line().send(number);
  }
  // By way, then by block.
  std::vector<std::vector<Message>> messages() const {
    std::vector<std::vector<Message>> all(ways_.size());
    for (auto& of_one_way : all) {
      for (std::size_t i = 0; i < blocks_; ++i) of_one_way.push_back(process_.line().receive<Message>());
    }
    return all;
  }

 private:
  void share(const Line& line, std::size_t importers) const {
    for (std::size_t i = 0; i < importers; ++i) {
      for (const auto& way : ways_) way->meet(line.receive<std::int32_t>());
    }
    for (const auto& way : ways_) {
      for (std::size_t i = 0; i < blocks_; ++i) line.send(way->share(size));
    }
    line.receive<char>();  // until the end
  }

  std::vector<std::unique_ptr<Way>> ways_;
  std::size_t blocks_;
  Process process_;
};

std::vector<std::unique_ptr<Way>> only_devshare() {
  std::vector<std::unique_ptr<Way>> ways;
  ways.push_back(by_devshare(Touch::copies));
  return ways;
}

// --- many exports ---

void measure_many_exports(std::vector<Row>* rows) {
  constexpr std::size_t few = 100;
  constexpr std::size_t many = 10'000;
  constexpr std::size_t imports = 150;  // in a turn
  const char* const measure = "import, 10,000 exports alive / 100";
  rlimit descriptors{};
  ::getrlimit(RLIMIT_NOFILE, &descriptors);
  descriptors.rlim_cur = descriptors.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &descriptors);
  if (descriptors.rlim_cur < many + 100) {
    rows->push_back(not_measured(measure, "a process may have too few descriptors"));
    return;
  }
  const std::size_t blocks[] = {few, few, many};
  const auto importer = by_devshare(Touch::copies);
  std::vector<std::unique_ptr<Exporter>> exporters;
  for (const std::size_t count : blocks) exporters.push_back(std::make_unique<Exporter>(only_devshare(), count, 1, 0));
  pin_to(1);
  std::vector<std::vector<Message>> messages;
  for (const auto& exporter : exporters) {
    exporter->admit({importer->introduce()});
    messages.push_back(exporter->messages().front());
  }
  const auto turn = [&](std::size_t which) {
    std::size_t next = 0;
    return median_time(imports, [&, which] {
      next += 7919;  // a prime: all over the table, in no order that a cache likes
      importer->use(messages[which][next % messages[which].size()], size);
    });
  };
  const auto figures = alternate({{"import, 100 exports", [&] { return turn(0); }},
                                  {"import, 100 exports, again", [&] { return turn(1); }},
                                  {"import, 10,000 exports", [&] { return turn(2); }}});
  rows->push_back(judge(measure, figures[2], figures[0], Goal::at_most, 1.10, ratio(figures[1], figures[0])));
}

// --- many importers ---

constexpr std::size_t crowd = 8;
constexpr std::size_t shared_blocks = 64;

// Read and written by all processes of the crowd.
struct Board {
  std::atomic<int> way{-1};  // whose turn it is; -1: nobody's
  std::atomic<std::uint64_t> imports[crowd] = {};
};

void import_as_shown(Board& board, std::size_t number, const std::vector<std::unique_ptr<Way>>& ways, const Line& line) {
  for (const auto& way : ways) line.send(way->introduce());
  std::vector<std::vector<Message>> messages(ways.size());
  for (auto& of_one_way : messages) {
    for (std::size_t i = 0; i < shared_blocks; ++i) of_one_way.push_back(line.receive<Message>());
  }
  for (std::size_t next = number * 11;; ++next) {
    const int way = board.way.load(std::memory_order_relaxed);
    if (way < 0) {
      ::usleep(500);
      continue;
    }
    const auto index = static_cast<std::size_t>(way);
    ways[index]->use(messages[index][next % shared_blocks], size);
    board.imports[number].fetch_add(1, std::memory_order_relaxed);
  }
}

std::uint64_t imports_so_far(const Board& board) {
  std::uint64_t sum = 0;
  for (const auto& one : board.imports) sum += one.load(std::memory_order_relaxed);
  return sum;
}

// Imports a second of the whole crowd.
double rate(Board& board, int way) {
  board.way = way;
  ::usleep(30'000);
  const std::uint64_t before = imports_so_far(board);
  const double begin = now_ns();
  ::usleep(120'000);
  const double figure = static_cast<double>(imports_so_far(board) - before) / (now_ns() - begin) * 1e9;
  board.way = -1;
  ::usleep(5'000);
  return figure;
}

void measure_many_importers(std::vector<Row>* rows) {
  void* const page = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) give_up("mmap");
  auto& board = *new (page) Board;
  const auto make_ways = [] {
    std::vector<std::unique_ptr<Way>> ways;
    for (const Touch touch : {Touch::copies, Touch::views}) {
      ways.push_back(by_hand(touch));
      ways.push_back(by_devshare(touch));
    }
    return ways;
  };
  const auto ways = make_ways();
  std::vector<std::unique_ptr<Process>> importers;
  for (std::size_t i = 0; i < crowd; ++i) {
    importers.push_back(
        std::make_unique<Process>([&, i](const Line& line) { import_as_shown(board, i, ways, line); }));
  }
  const Exporter exporter(make_ways(), shared_blocks, crowd, std::nullopt);
  for (const auto& importer : importers) {
    for (std::size_t i = 0; i < ways.size(); ++i) exporter.admit({importer->line().receive<std::int32_t>()});
  }
  for (const auto& of_one_way : exporter.messages()) {
    for (const auto& importer : importers) {
      for (const Message& message : of_one_way) importer->line().send(message);
    }
  }
  const auto contender = [&](const char* name, int way) {
    return Contender{fmt::format("8 importers, {}, imports/s", name), [&board, way] { return rate(board, way); }};
  };
  const auto figures =
      alternate({contender("by hand, copies", 0), contender("by hand, copies, again", 0),
                 contender("devshare, copies", 1), contender("by hand, views", 2),
                 contender("by hand, views, again", 2), contender("devshare, views", 3)});
  rows->push_back(judge("rate of 8 importers, copies / by hand", figures[2], figures[0], Goal::at_least, 0.90,
                        ratio(figures[1], figures[0])));
  rows->push_back(judge("rate of 8 importers, views / by hand", figures[5], figures[3], Goal::at_least, 0.90,
                        ratio(figures[4], figures[3])));
}

// --- the same key again ---

void measure_repeated_import(std::vector<Row>* rows) {
  constexpr std::size_t first_imports = 60;  // in a turn
  constexpr std::size_t more_imports = 2'500;
  const auto introduction = by_devshare(Touch::copies);
  const Exporter exporter(only_devshare(), 1, 1, 0);
  pin_to(1);
  exporter.admit({introduction->introduce()});
  const auto message = exporter.messages().front().front();
  const Device device = must(must(Runtime::open(), "the runtime").device(DeviceId{0}), "the device");
  const auto ticket = must(ReceivedTicket::decode(message), "decoding");
  const auto open_and_close = [&] {
    auto mapping = must(ImportedMapping::open(ticket, device), "importing");
    must(std::move(mapping).close(), "closing");
  };
  const auto first = [&] { return median_time(first_imports, open_and_close); };
  const auto again = [&] {
    const auto open = must(ImportedMapping::open(ticket, device), "importing");
    const double begin = now_ns();
    for (std::size_t i = 0; i < more_imports; ++i) open_and_close();
    return (now_ns() - begin) / static_cast<double>(more_imports);
  };
  const auto figures =
      alternate({{"first import and close, ns", first}, {"first import and close, again", first},
                 {"further import and close, ns", again}});
  rows->push_back(judge("import of an open key / first import", figures[2], figures[0], Goal::at_most, 0.01,
                        ratio(figures[1], figures[0]), fmt::format(", {:.0f} ns", median(figures[2]))));
}

std::vector<Row> rows_of(void (*measure)(std::vector<Row>*)) {
  std::vector<Row> rows;
  measure(&rows);
  return rows;
}

}  // namespace

std::vector<Row> many_exports_rows() { return rows_of(measure_many_exports); }
std::vector<Row> many_importers_rows() { return rows_of(measure_many_importers); }
std::vector<Row> repeated_import_rows() { return rows_of(measure_repeated_import); }

}  // namespace devshare::bench

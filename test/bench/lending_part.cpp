// SPDX-License-Identifier: Apache-2.0
// Lending against the same exchange written by hand: one borrow, 32 at once, 8 borrowers at once, and being woken.
#include "by_hand/hand_lender.hpp"
#include "parts.hpp"
#include "process.hpp"
#include "rounds.hpp"
#include "way.hpp"

#include <devshare/devshare.hpp>
#include <devshare/format.hpp>

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace devshare::bench {
namespace {

constexpr std::size_t offers = 32;
constexpr std::size_t size = 4096;
constexpr std::size_t crowd = 8;

template <class R>
auto must(R result, const char* what) {
  if (!result) give_up(fmt::format("{}: {}", what, detail::plain_error(result.error())));
  if constexpr (!std::is_void_v<typename R::value_type>) return *std::move(result);
}

const Device& the_device() {
  static const Device device = must(must(Runtime::open(), "the runtime").device(DeviceId{0}), "the device");
  return device;
}

template <class Memory>
void touch(const Memory& memory) {
  std::byte byte{};
  must(copy_to_host(the_device(), std::span(&byte, 1), memory.bytes().first(1)), "the first byte");
  must(copy_to_host(the_device(), std::span(&byte, 1), memory.bytes().last(1)), "the last byte");
}

std::string offer_name(std::size_t i) { return "offer " + std::to_string(i); }

// Shared by all processes of a measurement.
struct Board {
  std::atomic<double> stamp{0};  // when somebody was woken
  std::atomic<int> way{-1};      // whose turn it is in the crowd; -1: nobody's
  std::atomic<std::uint64_t> done[crowd] = {};
};

Board& new_board() {
  void* const page = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) give_up("mmap");
  return *new (page) Board;
}

enum class Wake : char { by_publish = 'p', by_hand = 'h' };

// The process that has the memory, in both ways: it lends it, and serves tickets of it by hand.
class Owner {
 public:
  Owner(Board& board, std::size_t clients, std::optional<int> processor)
      : name_(fmt::format("devshare-bench-{}", ::getpid())),
        process_([this, &board, clients, processor](const Line& line) {
          if (processor) pin_to(*processor);
          own(board, line, clients);
        }) {}

  // Called in each client's process, in the one that made this object for one client, before anything else.
  static std::int32_t introduction() { return must(the_device().runtime().bare_pid(), "a number").to_message(); }
  void admit(const std::vector<std::int32_t>& clients) const {
    for (const std::int32_t client : clients) process_.line().send(client);
    process_.line().receive<char>();  // everything is there
  }
  Endpoint endpoint() const { return Endpoint::abstract(name_ + "-lender"); }
  const std::string& hand_name() const { return name_; }
  const Line& line() const { return process_.line(); }

 private:
  void own(Board& board, const Line& line, std::size_t clients) const {
    std::vector<BarePid> pids;
    for (std::size_t i = 0; i < clients; ++i) pids.push_back(BarePid::from_peer_message(line.receive<std::int32_t>()));
    auto lender = must(Lender::at(the_device().runtime(), endpoint()), "a lender");
    std::vector<Lent<DeviceMemory>> lent;
    std::vector<SharedMemoryKey<DeviceMemory>> keys;
    std::vector<TicketBytes> tickets;
    for (std::size_t i = 0; i < offers; ++i) {
      const auto memory = [] { return must(DeviceMemory::allocate(the_device(), size), "memory"); };
      lent.push_back(must(lender.offer(offer_name(i), memory()), "an offer"));
      keys.push_back(must(export_key(memory()), "a key"));
      tickets.push_back(must(keys.back().admit(pids), "admission").bytes());
    }
    const auto serving = must(serve(lender), "a thread");
    std::thread([&] { serve_by_hand(name_, tickets); }).detach();
    line.send('k');
    for (;;) {
      const auto how = line.receive<Wake>();
      ::usleep(300);  // by then the other waits
      board.stamp = now_ns();
      if (how == Wake::by_publish) {
        must(lent.front().publish(), "publishing");
      } else {
        line.send('w');
      }
    }
  }

  std::string name_;
  Process process_;
};

// One client, in both ways.
class Client {
 public:
  explicit Client(const Owner& owner)
      : borrower_(
            must(Borrower::connect(the_device(), owner.endpoint(), Deadline::in_milliseconds(20'000)), "connecting")),
        hand_(owner.hand_name()) {}

  void borrow(std::size_t i) const {
    auto lease = must(borrower_.borrow(offer_name(i), Deadline::never()), "borrowing");
    touch(lease);
    must(std::move(lease).close(), "returning");
  }
  void by_hand(std::size_t i) const {
    const auto offer = static_cast<std::uint32_t>(i);
    auto mapping = must(ImportedMapping::open(hand_.borrow(offer), the_device()), "importing");
    hand_.imported(offer);
    touch(mapping);
    must(std::move(mapping).close(), "closing");
    hand_.returned(offer);
  }
  void borrow_all() const {
    std::array<std::string, offers> names;
    std::array<std::string_view, offers> views;
    for (std::size_t i = 0; i < offers; ++i) views[i] = names[i] = offer_name(i);
    auto leases = must(borrower_.borrow_all(views, Deadline::never()), "borrowing all");
    for (auto& lease : leases) touch(lease);
    for (auto& lease : leases) must(std::move(lease).close(), "returning");
  }
  Lease hold() const { return must(borrower_.borrow(offer_name(0), Deadline::never()), "borrowing"); }

 private:
  Borrower borrower_;
  HandClient hand_;
};

// --- one client ---

void measure_one(std::vector<Row>* rows) {
  constexpr std::size_t borrows = 64;  // in a turn
  Board& board = new_board();
  const Owner owner(board, 1, 0);
  pin_to(1);
  owner.admit({Owner::introduction()});
  const Client client(owner);
  std::size_t next = 0;
  const auto singles = [&] { return median_time(borrows, [&] { client.borrow(next++ % offers); }); };
  const auto by_hand = [&] { return median_time(borrows, [&] { client.by_hand(next++ % offers); }); };
  const auto at_once = [&] { return median_time(3, [&] { client.borrow_all(); }) / static_cast<double>(offers); };
  const auto figures = alternate({{"borrow, by hand", by_hand},
                                  {"borrow, by hand, again", by_hand},
                                  {"borrow, devshare", singles},
                                  {"32 at once, each", at_once}});
  const Ratio control = ratio(figures[1], figures[0]);
  rows->push_back(judge("borrow, touch and return / by hand", figures[2], figures[0], Goal::at_most, 1.10, control));
  rows->push_back(judge("rate of 32 at once / one by one", figures[2], figures[3], Goal::at_least, 2.5, control));
}

// --- being woken ---

void measure_wake(std::vector<Row>* rows) {
  constexpr std::size_t wakes = 30;   // in a turn
  constexpr int turns_of_wakes = 96;  // the scheduler's own spread needs more of them than most measures
  Board& board = new_board();
  const Owner owner(board, 1, 0);
  pin_to(1);
  owner.admit({Owner::introduction()});
  const Client client(owner);
  const Lease lease = client.hold();
  std::uint64_t seen = lease.generation();
  const auto median_wake = [&](const auto& wake) {
    std::vector<double> times;
    for (std::size_t i = 0; i < wakes; ++i) times.push_back(wake());
    return median(std::move(times));
  };
  const auto by_publish = [&] {
    owner.line().send(Wake::by_publish);
    seen = must(lease.wait_newer(seen, Deadline::never()), "waiting");
    return now_ns() - board.stamp;
  };
  const auto by_hand = [&] {
    owner.line().send(Wake::by_hand);
    owner.line().receive<char>();
    return now_ns() - board.stamp;
  };
  const auto figures = alternate({{"a bare socket wakes", [&] { return median_wake(by_hand); }},
                                  {"a bare socket wakes, again", [&] { return median_wake(by_hand); }},
                                  {"publish wakes", [&] { return median_wake(by_publish); }}},
                                 turns_of_wakes);
  rows->push_back(judge("publish wakes a borrower / bare socket", figures[2], figures[0], Goal::at_most, 1.20,
                        ratio(figures[1], figures[0])));
}

// --- a crowd ---

void borrow_as_shown(Board& board, std::size_t number, const Owner& owner, const Line& line) {
  line.send(Owner::introduction());
  line.receive<char>();
  const Client client(owner);
  for (std::size_t next = number * 11;; ++next) {
    const int way = board.way.load(std::memory_order_relaxed);
    if (way < 0) {
      ::usleep(500);
      continue;
    }
    way == 0 ? client.by_hand(next % offers) : client.borrow(next % offers);
    board.done[number].fetch_add(1, std::memory_order_relaxed);
  }
}

double rate(Board& board, int way) {
  const auto so_far = [&] {
    std::uint64_t sum = 0;
    for (const auto& one : board.done) sum += one.load(std::memory_order_relaxed);
    return sum;
  };
  board.way = way;
  ::usleep(30'000);
  const std::uint64_t before = so_far();
  const double begin = now_ns();
  ::usleep(120'000);
  const double figure = static_cast<double>(so_far() - before) / (now_ns() - begin) * 1e9;
  board.way = -1;
  ::usleep(5'000);
  return figure;
}

void measure_crowd(std::vector<Row>* rows) {
  constexpr int turns_of_crowds = 48;  // likewise: eight processes on the machine's processors
  Board& board = new_board();
  const Owner owner(board, crowd, std::nullopt);
  std::vector<std::unique_ptr<Process>> clients;
  for (std::size_t i = 0; i < crowd; ++i) {
    clients.push_back(std::make_unique<Process>([&, i](const Line& line) { borrow_as_shown(board, i, owner, line); }));
  }
  std::vector<std::int32_t> introductions;
  for (const auto& client : clients) introductions.push_back(client->line().receive<std::int32_t>());
  owner.admit(introductions);
  for (const auto& client : clients) client->line().send('g');
  const auto figures = alternate({{"8 borrowers, by hand, borrows/s", [&] { return rate(board, 0); }},
                                  {"8 borrowers, by hand, again", [&] { return rate(board, 0); }},
                                  {"8 borrowers, devshare, borrows/s", [&] { return rate(board, 1); }}},
                                 turns_of_crowds);
  rows->push_back(judge("rate of 8 borrowers / by hand", figures[2], figures[0], Goal::at_least, 0.90,
                        ratio(figures[1], figures[0])));
}

std::vector<Row> rows_of(void (*measure)(std::vector<Row>*)) {
  std::vector<Row> rows;
  measure(&rows);
  return rows;
}

}  // namespace

std::vector<Row> lending_rows() { return rows_of(measure_one); }
std::vector<Row> lending_wake_rows() { return rows_of(measure_wake); }
std::vector<Row> lending_crowd_rows() { return rows_of(measure_crowd); }

}  // namespace devshare::bench

// SPDX-License-Identifier: Apache-2.0
#include "share_driver.hpp"

#include <utility>

namespace devshare::bench {
namespace {

struct Order {
  std::uint32_t way;
  std::uint64_t size;
  Message message;
};

}  // namespace

ShareDriver::ShareDriver(std::vector<std::unique_ptr<Way>> ways) : ways_(std::move(ways)) {
  importer_ = std::make_unique<Process>([this](const Line& line) { import_as_told(line); });
  pin_to(0);
  for (const auto& way : ways_) way->meet(importer_->line().receive<std::int32_t>());
}

double ShareDriver::turn(std::uint32_t way, std::size_t bytes, std::size_t shares) const {
  return median_time(shares, [&] {
    importer_->line().send(Order{way, bytes, ways_[way]->share(bytes)});
    importer_->line().receive<char>();
    ways_[way]->end();
  });
}

Contender ShareDriver::contender(std::string name, std::uint32_t way, std::size_t bytes) const {
  return {std::move(name), [this, way, bytes] { return turn(way, bytes, shares_in_turn); }};
}

void ShareDriver::import_as_told(const Line& line) const {
  pin_to(1);
  for (const auto& way : ways_) line.send(way->introduce());
  for (;;) {
    const Order order = line.receive<Order>();
    ways_[order.way]->use(order.message, order.size);
    line.send('k');
  }
}

}  // namespace devshare::bench

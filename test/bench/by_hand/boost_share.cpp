// SPDX-License-Identifier: Apache-2.0
#include "by_hand.hpp"

#include <boost/interprocess/mapped_region.hpp>
#include <boost/interprocess/shared_memory_object.hpp>

#include <cstring>
#include <list>

#include <unistd.h>

namespace devshare::bench {
namespace {

namespace interprocess = boost::interprocess;

class ByBoost final : public Way {
 public:
  std::int32_t introduce() override { return static_cast<std::int32_t>(::getpid()); }
  void meet(std::int32_t) override {}  // nobody is asked who he is

  Message share(std::size_t size) override {
    Message message{};
    const std::string name = "devshare-bench." + std::to_string(::getpid()) + "." + std::to_string(++serial_);
    std::memcpy(message.data(), name.c_str(), name.size() + 1);
    interprocess::shared_memory_object object(interprocess::create_only, name.c_str(), interprocess::read_write);
    object.truncate(static_cast<interprocess::offset_t>(size));
    interprocess::mapped_region region(object, interprocess::read_write);
    auto* const bytes = static_cast<std::byte*>(region.get_address());
    bytes[0] = first_byte;
    bytes[size - 1] = last_byte;
    shared_.push_back({name, std::move(object), std::move(region)});
    return message;
  }

  void end() override {
    for (const Shared& one : shared_) interprocess::shared_memory_object::remove(one.name.c_str());
    shared_.clear();
  }

  void use(const Message& message, std::size_t size) override {
    interprocess::shared_memory_object object(interprocess::open_only, reinterpret_cast<const char*>(message.data()),
                                              interprocess::read_write);
    interprocess::mapped_region region(object, interprocess::read_write);
    const auto* const bytes = static_cast<const volatile std::byte*>(region.get_address());
    if (region.get_size() != size || bytes[0] != first_byte || bytes[size - 1] != last_byte) {
      give_up("boost: the bytes are not those that were written");
    }
  }

 private:
  struct Shared {
    std::string name;
    interprocess::shared_memory_object object;
    interprocess::mapped_region region;
  };

  std::list<Shared> shared_;
  long serial_ = 0;
};

}  // namespace

std::unique_ptr<Way> by_boost() { return std::make_unique<ByBoost>(); }

}  // namespace devshare::bench

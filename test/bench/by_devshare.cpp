// SPDX-License-Identifier: Apache-2.0
#include "way.hpp"

#include <devshare/devshare.hpp>
#include <devshare/format.hpp>
#include <devshare/host.hpp>

#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace devshare::bench {
namespace {

static_assert(ticket_size == std::tuple_size_v<Message>);

// The value of a result, or the end of the process.
template <class R>
auto must(R result, const char* what) {
  if (!result) give_up(fmt::format("{}: {}", what, result.error()));
  if constexpr (!std::is_void_v<typename R::value_type>) return *std::move(result);
}

template <class K>
class ByDevshare final : public Way {
 public:
  explicit ByDevshare(Touch touch, Pages pages = {}) : touch_(touch), pages_(pages) {}

  std::int32_t introduce() override { return must(runtime().bare_pid(), "the bare pid").to_message(); }
  void meet(std::int32_t importer) override { admitted_.push_back(BarePid::from_peer_message(importer)); }

  Message share(std::size_t size) override {
    const Placement placement{.host_pages = pages_.huge ? HostPages::huge_if_free : HostPages::normal,
                              .populate = populate()};
    auto memory = must(allocate_for<K>(device(), size, placement), "allocating");
    check_pages(memory.backing());
    if (touch_ == Touch::all_pages) {
      put_everywhere(memory.bytes());
    } else {
      put_ends(memory.bytes());
    }
    auto exported = export_for<K>(std::move(memory));
    if (!exported) give_up(fmt::format("exporting: {}", exported.error()));
    keys_.push_back(*std::move(exported));
    const auto ticket = must(keys_.back().admit(std::span<const BarePid>(admitted_)), "admitting");
    Message message;
    std::memcpy(message.data(), ticket.bytes().data(), message.size());
    return message;
  }

  void end() override {
    for (auto& key : keys_) {
      auto closed = std::move(key).close();
      if (!closed) give_up(fmt::format("closing the key: {}", closed.error()));
      auto memory = *std::move(closed);
      must(std::move(memory).close(), "freeing");
    }
    keys_.clear();
  }

  void use(const Message& message, std::size_t size) override {
    const auto ticket = must(ReceivedTicket::decode(message), "decoding the ticket");
    auto mapping = must(ImportedMapping::open(ticket, device(), populate()), "importing");
    if (mapping.size() != size) give_up("the import has another size");
    check_pages(mapping.backing());
    if (touch_ == Touch::all_pages) {
      change_everywhere(mapping.bytes());
    } else {
      check_ends(mapping.bytes());
    }
    must(std::move(mapping).close(), "closing the import");
  }

 private:
  Runtime& runtime() {
    if (!runtime_) runtime_ = must(Runtime::open(), "opening the runtime");
    return *runtime_;
  }
  Device& device() {
    if (!device_) {
      device_ = must(runtime().device(DeviceId{0}), "the device");
      must(device_->make_current(), "making the device current");  // as a program does that works on a device
    }
    return *device_;
  }

  void put_ends(DeviceSpan<std::byte> memory) {
    if (touch_ == Touch::views) {
      const auto bytes = must(host::view(memory), "a view");
      bytes.front() = first_byte;
      bytes.back() = last_byte;
    } else {
      must(copy_to_device(device(), memory.first(1), std::array{first_byte}), "copying in");
      must(copy_to_device(device(), memory.last(1), std::array{last_byte}), "copying in");
    }
  }

  void check_ends(DeviceSpan<std::byte> memory) {
    std::array<std::byte, 1> first{};
    std::array<std::byte, 1> last{};
    if (touch_ == Touch::views) {
      const auto bytes = must(host::view(memory), "a view");
      first[0] = bytes.front();
      last[0] = bytes.back();
    } else {
      must(copy_to_host(device(), first, memory.first(1)), "copying out");
      must(copy_to_host(device(), last, memory.last(1)), "copying out");
    }
    if (first[0] != first_byte || last[0] != last_byte) give_up("the bytes are not those that were written");
  }

  // Every page is written by the one and read and written by the other.
  void put_everywhere(DeviceSpan<std::byte> memory) {
    const auto bytes = must(host::view(memory), "a view");
    for (std::size_t at = 0; at < bytes.size(); at += page) bytes[at] = first_byte;
  }
  void change_everywhere(DeviceSpan<std::byte> memory) {
    const auto bytes = must(host::view(memory), "a view");
    for (std::size_t at = 0; at < bytes.size(); at += page) {
      if (bytes[at] != first_byte) give_up("the bytes are not those that were written");
      bytes[at] = last_byte;
    }
  }

  Populate populate() const { return pages_.populate ? Populate::now : Populate::when_touched; }

  // A row that says huge must not be measured in others.
  void check_pages(const HostBacking& backing) const {
    if (pages_.huge && backing.pages != HostBacking::Pages::huge) give_up("the machine had no huge pages left");
    if (pages_.populate && !backing.populated) give_up("not all pages are there");
  }

  static constexpr std::size_t page = 4096;

  const Touch touch_;
  const Pages pages_;
  std::optional<Runtime> runtime_;
  std::optional<Device> device_;
  std::vector<BarePid> admitted_;
  std::vector<Exported<K, MemoryFor<K>>> keys_;
};

}  // namespace

std::unique_ptr<Way> by_devshare(Touch touch) { return std::make_unique<ByDevshare<by_key>>(touch); }
std::unique_ptr<Way> by_devshare_handles(Touch touch) { return std::make_unique<ByDevshare<v2>>(touch); }
std::unique_ptr<Way> by_devshare_in(Pages pages) {
  return std::make_unique<ByDevshare<by_key>>(Touch::all_pages, pages);
}

}  // namespace devshare::bench

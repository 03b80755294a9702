// SPDX-License-Identifier: Apache-2.0
#include "switches.hpp"

#include <devshare/instrument.hpp>

#include <bit>
#include <charconv>
#include <concepts>

namespace devshare::host {
namespace {

// Strict: the whole text, no sign that the type has no use for, no space, no overflow.
template <std::integral Number>
bool parse(std::string_view text, Number* out) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stopped_at, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc{} || stopped_at != end) return false;
  *out = value;
  return true;
}

template <std::integral Number>
bool parse_between(std::string_view text, Number lowest, Number highest, Number* out) {
  Number value{};
  if (!parse(text, &value) || value < lowest || value > highest) return false;
  *out = value;
  return true;
}

// 4096, 64K, 1M, 2G.
bool parse_bytes(std::string_view text, std::uint64_t* out) {
  unsigned shift = 0;
  if (!text.empty()) {
    switch (text.back()) {
      case 'K':
        shift = 10;
        break;
      case 'M':
        shift = 20;
        break;
      case 'G':
        shift = 30;
        break;
      default:
        break;
    }
    if (shift != 0) text.remove_suffix(1);
  }
  std::uint64_t value = 0;
  if (!parse(text, &value) || value == 0 || value > (UINT64_MAX >> shift)) return false;
  *out = value << shift;
  return true;
}

bool parse_page(std::string_view text, std::uint64_t* out) {
  std::uint64_t value = 0;
  if (!parse_bytes(text, &value) || !std::has_single_bit(value)) return false;
  if (value < 4096 || value > (std::uint64_t{1} << 30)) return false;
  *out = value;
  return true;
}

// One of two words.
bool parse_choice(std::string_view text, std::string_view no, std::string_view yes, bool* out) {
  if (text != no && text != yes) return false;
  *out = text == yes;
  return true;
}

// Splits off the part before the next `separator` (or the whole rest).
std::string_view take(std::string_view* rest, char separator) {
  const std::size_t at = rest->find(separator);
  const std::string_view part = rest->substr(0, at);
  *rest = at == std::string_view::npos ? std::string_view{} : rest->substr(at + 1);
  return part;
}

bool set_product(Profile& profile, std::string_view text) {
  for (const Product product : {Product::a2, Product::a3, Product::training, Product::p310, Product::p950}) {
    if (text != product_name(product)) continue;
    profile.product = product;
    profile.peers_per_device = product == Product::p950 ? 16 : 8;
    profile.cross_device_needs_p2p_memory = product == Product::p310;
    return true;
  }
  return false;
}

bool set_interface(Profile& profile, std::string_view text) {
  const Release release = text == "all" ? newest_release : release_by_name(text);
  if (release > newest_release || text == release_names[newest_release]) return false;
  profile.interface = release;
  return true;
}

bool set_devices(Profile& profile, std::string_view text) {
  return parse_between(text, 1, max_devices, &profile.device_count);
}

// The ceiling keeps the sum over all processes far from the end of 64 bits.
bool set_capacity(Profile& profile, std::string_view text) {
  return parse_bytes(text, &profile.capacity) && profile.capacity <= (std::uint64_t{1} << 50);
}

// "01/10": a row for each device, in it a column for each device it can reach.
bool set_peers(Profile& profile, std::string_view text) {
  const auto count = static_cast<std::size_t>(profile.device_count);
  if (text.size() != count * count + count - 1) return false;
  std::vector<std::uint8_t> matrix;
  for (std::size_t row = 0; row < count; ++row) {
    const std::string_view columns = text.substr(row * (count + 1), count);
    if (row != 0 && text[row * (count + 1) - 1] != '/') return false;
    for (const char column : columns) {
      if (column != '0' && column != '1') return false;
      matrix.push_back(column == '1' ? 1 : 0);
    }
  }
  profile.peers = std::move(matrix);
  return true;
}

// As the vendor's runtime reads it, and so never refused: ids up to the first that is none or not of this machine;
// ids that do not ascend void the whole list, and the process sees no device.
bool set_visible(Profile& profile, std::string_view text) {
  std::vector<std::int32_t> visible;
  while (!text.empty()) {
    std::int32_t id = -1;
    if (!parse_between(take(&text, ','), 0, profile.device_count - 1, &id)) break;
    if (!visible.empty() && id <= visible.back()) {
      visible.clear();
      break;
    }
    visible.push_back(id);
  }
  profile.visible = std::move(visible);
  return true;
}

bool set_normal_page(Profile& profile, std::string_view text) { return parse_page(text, &profile.normal_page); }

bool set_huge_page(Profile& profile, std::string_view text) {
  return parse_page(text, &profile.huge_page) && profile.huge_page >= profile.normal_page;
}

bool set_address_space(Profile& profile, std::string_view text) { return parse_bytes(text, &profile.address_space); }

bool set_bare_pid_offset(Profile& profile, std::string_view text) { return parse(text, &profile.bare_pid_offset); }

bool set_bare_pid(Profile& profile, std::string_view text) {
  return parse_choice(text, "plain", "inode", &profile.bare_pid_by_inode);
}

bool set_identity(Profile& profile, std::string_view text) {
  return parse_choice(text, "inode", "start_time", &profile.identity_by_start_time);
}

bool set_exporter_death(Profile& profile, std::string_view text) {
  return parse_choice(text, "keep", "invalidate", &profile.exporter_death_invalidates);
}

bool set_cross_device_copy(Profile& profile, std::string_view text) {
  return parse_choice(text, "refuse", "allow", &profile.cross_device_copy_allowed);
}

bool set_interior_export(Profile& profile, std::string_view text) {
  return parse_choice(text, "refuse", "allow", &profile.interior_export_allowed);
}

bool set_handle_reimport(Profile& profile, std::string_view text) {
  return parse_choice(text, "refuse", "count", &profile.handle_reimport_counts);
}

bool set_task_errors(Profile& profile, std::string_view text) {
  return parse_choice(text, "once", "stay", &profile.task_errors_stay);
}

bool set_server(Profile& profile, std::string_view text) {
  return parse_between(text, std::uint8_t{0}, std::uint8_t{255}, &profile.server);
}

bool set_mixing(Profile& profile, std::string_view text) {
  return parse_choice(text, "refuse", "device_only", &profile.mixed_origins_allowed);
}

bool set_deadline(Profile& profile, std::string_view text) {
  return parse_between(text, 1U, 86'400'000U, &profile.exporter_deadline_ms);
}

// A relative directory would mean another place to every process that has another working directory.
bool set_directory(std::string& directory, std::string_view text) {
  if (text.empty() || text.front() != '/' || text.find('\0') != std::string_view::npos) return false;
  directory = text;
  return true;
}

bool set_state(Profile& profile, std::string_view text) {
  if (text == "none") {
    profile.state_directory = text;
    return true;
  }
  return set_directory(profile.state_directory, text);
}

bool set_socket_dir(Profile& profile, std::string_view text) { return set_directory(profile.socket_directory, text); }
bool set_backing(Profile& profile, std::string_view text) { return set_directory(profile.backing_directory, text); }

bool set_fallback(Profile& profile, std::string_view text) {
  return parse_choice(text, "refuse", "allow", &profile.backing_fallback_allowed);
}

bool set_backing_pages(Profile& profile, std::string_view text) {
  return parse_choice(text, "normal", "huge_if_free", &profile.backing_huge);
}

bool set_backing_populate(Profile& profile, std::string_view text) {
  return parse_choice(text, "when_touched", "now", &profile.backing_populated);
}

bool set_raise_nofile(Profile& profile, std::string_view text) {
  return parse_choice(text, "0", "1", &profile.raise_nofile);
}

bool set_leaks(Profile& profile, std::string_view text) {
  return parse_choice(text, "ignore", "report", &profile.leaks_reported);
}

bool set_journal(Profile& profile, std::string_view text) {
  if (text.empty()) return false;
  profile.journal = text;
  return true;
}

// "0.25", "0.001"
bool parse_probability(std::string_view text, double* out) {
  constexpr std::size_t most_digits = 9;
  if (!text.starts_with("0.") || text.size() > 2 + most_digits) return false;
  std::uint32_t digits = 0;
  if (!parse(text.substr(2), &digits) || digits == 0) return false;
  double scale = 1;
  for (std::size_t place = 2; place < text.size(); ++place) scale *= 10;
  *out = digits / scale;
  return true;
}

// Which calls fail: "2", or "0.01@7", a probability and its seed.
bool parse_which(std::string_view text, FaultSwitch* out) {
  if (text.find('@') == std::string_view::npos) return parse(text, &out->nth);
  return parse_probability(take(&text, '@'), &out->probability) && parse(text, &out->seed);
}

// "aclrtMalloc:2:207001,aclrtFree:1:507899,aclrtMemcpy:0.01@7:507899"
bool parse_faults(std::string_view text, std::vector<FaultSwitch>* out) {
  if (text.empty()) return false;
  while (!text.empty()) {
    std::string_view item = take(&text, ',');
    FaultSwitch fault;
    fault.call = entry_by_name(take(&item, ':'));
    if (fault.call == acl::Entry::none || !parse_which(take(&item, ':'), &fault)) return false;
    if (!parse(item, &fault.code) || fault.code == 0) return false;
    out->push_back(fault);
  }
  return true;
}

// "aclrtMemcpy:20,aclrtFree:5"
bool parse_delays(std::string_view text, std::vector<DelaySwitch>* out) {
  if (text.empty()) return false;
  while (!text.empty()) {
    std::string_view item = take(&text, ',');
    DelaySwitch delay;
    delay.call = entry_by_name(take(&item, ':'));
    if (delay.call == acl::Entry::none || !parse(item, &delay.milliseconds)) return false;
    out->push_back(delay);
  }
  return true;
}

bool set_fault(Profile& profile, std::string_view text) { return parse_faults(text, &profile.faults); }
bool set_delay(Profile& profile, std::string_view text) { return parse_delays(text, &profile.delays); }
bool set_task_fault(Profile& profile, std::string_view text) { return parse_faults(text, &profile.task_faults); }
bool set_task_delay(Profile& profile, std::string_view text) { return parse_delays(text, &profile.task_delays); }

// Applied from top to bottom: a row may rely on those above it (the matrix on the device count).
constexpr Switch table[] = {
    {"DEVSHARE_HOST_PROFILE", set_product, "a2, a3, training, 310p or 950"},
    {"DEVSHARE_HOST_INTERFACE", set_interface, "all, or a CANN release: 8.0, 8.2.RC1, 8.5.0, 9.0.0 or 9.1.0"},
    {"DEVSHARE_HOST_DEVICES", set_devices, "a number from 1 to 16"},
    {"DEVSHARE_HOST_CAPACITY", set_capacity, "a number of bytes from 1 to 1048576G, with K, M or G if you like"},
    {"DEVSHARE_HOST_PEERS", set_peers, "a row of 0 and 1 for each device, joined by '/', as 01/10 for two"},
    {"ASCEND_RT_VISIBLE_DEVICES", set_visible, "ascending device ids, joined by ','"},
    {"DEVSHARE_HOST_NORMAL_PAGE", set_normal_page, "a power of two from 4K to 1G"},
    {"DEVSHARE_HOST_HUGE_PAGE", set_huge_page, "a power of two from the normal page to 1G"},
    {"DEVSHARE_HOST_ADDRESS_SPACE", set_address_space, "a number of bytes, with K, M or G if you like"},
    {"DEVSHARE_HOST_BARE_PID_OFFSET", set_bare_pid_offset, "a number"},
    {"DEVSHARE_HOST_BARE_PID", set_bare_pid, "plain or inode"},
    {"DEVSHARE_HOST_IDENTITY", set_identity, "inode or start_time"},
    {"DEVSHARE_HOST_EXPORTER_DEATH", set_exporter_death, "invalidate or keep"},
    {"DEVSHARE_HOST_CROSS_DEVICE_COPY", set_cross_device_copy, "refuse or allow"},
    {"DEVSHARE_HOST_INTERIOR_EXPORT", set_interior_export, "refuse or allow"},
    {"DEVSHARE_HOST_HANDLE_REIMPORT", set_handle_reimport, "refuse or count"},
    {"DEVSHARE_HOST_SERVER", set_server, "a number from 0 to 255"},
    {"DEVSHARE_HOST_MIXING", set_mixing, "refuse or device_only"},
    {"DEVSHARE_HOST_DEADLINE_MS", set_deadline, "a number of milliseconds from 1 to 86400000"},
    {"DEVSHARE_HOST_STATE", set_state, "none or an absolute path"},
    {"DEVSHARE_HOST_SOCKET_DIR", set_socket_dir, "an absolute path"},
    {"DEVSHARE_HOST_BACKING", set_backing, "an absolute path"},
    {"DEVSHARE_HOST_BACKING_PAGES", set_backing_pages, "normal or huge_if_free"},
    {"DEVSHARE_HOST_BACKING_POPULATE", set_backing_populate, "when_touched or now"},
    {"DEVSHARE_HOST_FALLBACK", set_fallback, "refuse or allow"},
    {"DEVSHARE_HOST_RAISE_NOFILE", set_raise_nofile, "0 or 1"},
    {"DEVSHARE_HOST_LEAKS", set_leaks, "ignore or report"},
    {"DEVSHARE_HOST_JOURNAL", set_journal, "a path"},
    {"DEVSHARE_HOST_FAULT", set_fault,
     "call:nth:code or call:probability@seed:code, joined by ',', as aclrtMalloc:2:207001,aclrtFree:0.01@7:507899"},
    {"DEVSHARE_HOST_DELAY", set_delay, "call:milliseconds, joined by ',', as aclrtMemcpy:20"},
    {"DEVSHARE_HOST_TASK_ERRORS", set_task_errors, "once or stay"},
    {"DEVSHARE_HOST_TASK_FAULT", set_task_fault,
     "call:nth:code or call:probability@seed:code, joined by ',', as aclrtMemcpyAsync:2:507899"},
    {"DEVSHARE_HOST_TASK_DELAY", set_task_delay, "call:milliseconds, joined by ',', as aclrtMemcpyAsync:20"},
};

}  // namespace

std::span<const Switch> switches() noexcept { return table; }

}  // namespace devshare::host

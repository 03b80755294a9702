// SPDX-License-Identifier: Apache-2.0
#include "init_config.hpp"

#include "failure.hpp"

#include <fmt/format.h>

namespace devshare::host {
namespace {

// Walks over JSON without building anything of it. Each function leaves what it has read behind and says whether that
// was well-formed.
class JsonWalk {
 public:
  explicit JsonWalk(std::string_view text) noexcept : rest_(text) {}

  bool at_end() noexcept {
    skip_blanks();
    return rest_.empty();
  }

  // The members of an object, each given to `member(name)`, which reads the value.
  template <class Member>
  bool object(Member member) noexcept {
    if (!take('{')) return false;
    if (take('}')) return true;
    do {
      std::string_view name;
      if (!string(&name) || !take(':') || !member(name)) return false;
    } while (take(','));
    return take('}');
  }

  // As it is written, with its escapes.
  bool string(std::string_view* out) noexcept {
    if (!take('"')) return false;
    for (std::size_t at = 0; at < rest_.size(); ++at) {
      const char character = rest_[at];
      if (character == '"') {
        *out = rest_.substr(0, at);
        rest_.remove_prefix(at + 1);
        return true;
      }
      if (static_cast<unsigned char>(character) < ' ') return false;
      if (character == '\\' && !escape(&at)) return false;
    }
    return false;
  }

  bool value(int depth = 0) noexcept {
    if (depth > deepest) return false;
    skip_blanks();
    if (rest_.empty()) return false;
    switch (rest_.front()) {
      case '{':
        return object([&](std::string_view) { return value(depth + 1); });
      case '[':
        return array(depth);
      case '"': {
        std::string_view ignored;
        return string(&ignored);
      }
      default:
        return word("true") || word("false") || word("null") || number();
    }
  }

 private:
  static constexpr int deepest = 64;

  void skip_blanks() noexcept {
    const std::size_t at = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(at == rest_.npos ? rest_.size() : at);
  }

  bool take(char wanted) noexcept {
    skip_blanks();
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool word(std::string_view wanted) noexcept {
    if (!rest_.starts_with(wanted)) return false;
    rest_.remove_prefix(wanted.size());
    return true;
  }

  // `at` is on the backslash, and on the last character of the escape afterwards.
  bool escape(std::size_t* at) const noexcept {
    if (++*at >= rest_.size()) return false;
    if (rest_[*at] != 'u') return std::string_view("\"\\/bfnrt").find(rest_[*at]) != std::string_view::npos;
    const std::string_view digits = rest_.substr(*at + 1, 4);
    *at += 4;
    return digits.size() == 4 && digits.find_first_not_of("0123456789abcdefABCDEF") == digits.npos;
  }

  bool array(int depth) noexcept {
    if (!take('[')) return false;
    if (take(']')) return true;
    do {
      if (!value(depth + 1)) return false;
    } while (take(','));
    return take(']');
  }

  std::size_t digits() noexcept {
    const std::size_t at = rest_.find_first_not_of("0123456789");
    const std::size_t count = at == rest_.npos ? rest_.size() : at;
    rest_.remove_prefix(count);
    return count;
  }

  bool number() noexcept {
    (void)word("-");
    if (!word("0") && digits() == 0) return false;
    if (word(".") && digits() == 0) return false;
    if (word("e") || word("E")) {
      if (!word("+")) (void)word("-");
      return digits() != 0;
    }
    return true;
  }

  std::string_view rest_;
};

}  // namespace

acl::aclError read_init_config(std::string_view content, std::string_view path, InitConfig* out) {
  InitConfig config;
  bool understood = true;
  JsonWalk walk(content);
  const bool whole = walk.object([&](std::string_view name) {
    if (name != "err_msg_mode") return walk.value();
    const JsonWalk before = walk;
    std::string_view mode;
    if (walk.string(&mode) && (mode == "0" || mode == "1")) {
      config.error_texts_of_process = mode == "1";
      return true;
    }
    walk = before;
    understood = false;
    return walk.value();
  });
  if (!whole || !walk.at_end()) {
    return refuse(acl::code::invalid_file, Reason::bad_argument, fmt::format("{} holds no JSON object", path));
  }
  if (!understood) {
    return refuse(acl::code::invalid_param, Reason::bad_argument,
                  fmt::format("{}: err_msg_mode must be \"0\" (texts of the thread) or \"1\" (of the process)", path));
  }
  *out = config;
  return 0;
}

}  // namespace devshare::host

// SPDX-License-Identifier: Apache-2.0
#include "call_arguments.hpp"

#include <fmt/format.h>

#include <cstring>
#include <iterator>

namespace devshare::host {
namespace {

constexpr std::string_view parameters[] = {
#define DEVSHARE_HOST_PARAMETERS(name, result, parameters, need, since) #parameters,
    DEVSHARE_ACL_ENTRIES(DEVSHARE_HOST_PARAMETERS)
#undef DEVSHARE_HOST_PARAMETERS
};

// "(void** devPtr, std::size_t size)" -> "devPtr", and the rest behind the comma.
std::string_view next_name(std::string_view* rest) {
  const std::size_t end = rest->find_first_of(",)");
  if (end == std::string_view::npos) return {};
  const std::string_view parameter = rest->substr(0, end);
  *rest = rest->substr(end + 1);
  return parameter.substr(parameter.find_last_of(" *(") + 1);
}

void append_escaped(std::string* out, std::string_view text) {
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(*out), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out->push_back(c);
    }
  }
}

// FNV-1a of the bytes up to the NUL: keys end there on every product.
std::uint64_t hash_of_key(const char* key) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::size_t i = 0; i < acl::ipc_key_size && key[i] != '\0'; ++i) {
    hash = (hash ^ static_cast<unsigned char>(key[i])) * 0x100000001b3;
  }
  return hash;
}

}  // namespace

ArgumentWriter::ArgumentWriter(acl::Entry call, acl::aclError result)
    : call_(call), result_(result), names_(parameters[static_cast<std::size_t>(call)]) {}

void ArgumentWriter::begin_value() {
  name_ = next_name(&names_);
  if (text_.size() > 1) text_ += ',';
  fmt::format_to(std::back_inserter(text_), "\"{}\":", name_);
}

template <class T>
void ArgumentWriter::add_number(T value) {
  begin_value();
  fmt::format_to(std::back_inserter(text_), "{}", value);
}

template void ArgumentWriter::add_number(std::int32_t);
template void ArgumentWriter::add_number(std::uint32_t);
template void ArgumentWriter::add_number(std::uint64_t);

template <class T>
void ArgumentWriter::add_pointee(const T* value) {
  if (value != nullptr && result_ == 0) return add_number(*value);
  begin_value();
  text_ += "null";
}

template void ArgumentWriter::add_pointee(const std::uint32_t*);
template void ArgumentWriter::add_pointee(const std::uint64_t*);

void ArgumentWriter::add(std::int32_t* value) {
  // The one array in the list: how long it is stands behind it, so its values do not appear.
  if (call_ == acl::Entry::aclrtIpcMemSetImportPid) return add(static_cast<const void*>(value));
  add_pointee(value);
}

void ArgumentWriter::add(const char* text) {
  begin_value();
  if (text == nullptr) {
    text_ += "null";
  } else if (name_ == "key") {
    fmt::format_to(std::back_inserter(text_), "\"#{:016x}\"", hash_of_key(text));
  } else {
    text_ += '"';
    append_escaped(&text_, text);
    text_ += '"';
  }
}

void ArgumentWriter::add(char* key) { add(result_ == 0 ? static_cast<const char*>(key) : nullptr); }

void ArgumentWriter::add(const void* address) {
  begin_value();
  fmt::format_to(std::back_inserter(text_), "\"{}\"", address);
}

void ArgumentWriter::add(void** address) {
  if (address != nullptr && result_ == 0) return add(static_cast<const void*>(*address));
  begin_value();
  text_ += "null";
}

std::string ArgumentWriter::take() && {
  text_ += '}';
  return std::move(text_);
}

}  // namespace devshare::host

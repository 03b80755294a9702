// SPDX-License-Identifier: Apache-2.0
#include "call_arguments.hpp"

#include <fmt/format.h>

#include <cstring>
#include <iterator>
#include <span>

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

constexpr std::string_view token_parameter = "shareableHandle";

// Arrays, of which how long they are stands behind: their values do not appear.
bool takes_pids(acl::Entry call) noexcept {
  return call == acl::Entry::aclrtIpcMemSetImportPid || call == acl::Entry::aclrtMemSetPidToShareableHandle ||
         call == acl::Entry::aclrtMemSetPidToShareableHandleV2 || call == acl::Entry::aclrtNotifySetImportPid;
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

void ArgumentWriter::add(std::int32_t* value) {
  if (takes_pids(call_)) return add(static_cast<const void*>(value));
  add_pointee(value);
}

// FNV-1a.
void ArgumentWriter::add_hash(const void* bytes, std::size_t count) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char byte : std::span(static_cast<const unsigned char*>(bytes), count)) {
    hash = (hash ^ byte) * 0x100000001b3;
  }
  fmt::format_to(std::back_inserter(text_), "\"#{:016x}\"", hash);
}

// Whether the next value is a token: then it is begun.
bool ArgumentWriter::begin_token() {
  std::string_view rest = names_;
  if (next_name(&rest) != token_parameter) return false;
  begin_value();
  return true;
}

void ArgumentWriter::add(std::uint64_t value) { begin_token() ? add_hash(&value, sizeof value) : add_number(value); }

void ArgumentWriter::add(std::uint64_t* value) {
  if (value != nullptr && result_ == 0) return add(*value);
  add_null();
}

void ArgumentWriter::add_null() {
  begin_value();
  text_ += "null";
}

void ArgumentWriter::append(const acl::aclrtMemLocation& location) {
  fmt::format_to(std::back_inserter(text_), R"({{"id":{},"type":{}}})", location.id, location.type);
}

void ArgumentWriter::append(const acl::aclrtPhysicalMemProp& property) {
  fmt::format_to(std::back_inserter(text_), R"({{"handleType":{},"allocationType":{},"memAttr":{},"location":)",
                 property.handleType, property.allocationType, property.memAttr);
  append(property.location);
  text_ += '}';
}

void ArgumentWriter::append(const acl::aclrtMemAccessDesc& desc) {
  fmt::format_to(std::back_inserter(text_), R"({{"flags":{},"location":)", desc.flags);
  append(desc.location);
  text_ += '}';
}

void ArgumentWriter::append(const acl::aclrtPtrAttributes& attributes) {
  text_ += R"({"location":)";
  append(attributes.location);
  fmt::format_to(std::back_inserter(text_), R"(,"pageSize":{}}})", attributes.pageSize);
}

template <class T>
void ArgumentWriter::add_struct(const T* value) {
  if (value == nullptr || result_ != 0) return add_null();
  begin_value();
  append(*value);
}

void ArgumentWriter::add(acl::aclrtPhysicalMemProp* property) { add_struct(property); }
void ArgumentWriter::add(acl::aclrtMemAccessDesc* first) { add_struct(first); }
void ArgumentWriter::add(acl::aclrtMemLocation* location) { add_struct(location); }
void ArgumentWriter::add(acl::aclrtPtrAttributes* attributes) { add_struct(attributes); }

void ArgumentWriter::add(const acl::aclrtPhysicalMemProp* asked) {
  if (asked == nullptr) return add_null();
  begin_value();
  append(*asked);
}

void ArgumentWriter::add(const char* text) {
  begin_value();
  if (text == nullptr) {
    text_ += "null";
  } else if (name_ == "key") {
    add_hash(text, ::strnlen(text, acl::ipc_key_size));  // keys end at a NUL on every product
  } else {
    text_ += '"';
    append_escaped(&text_, text);
    text_ += '"';
  }
}

void ArgumentWriter::add(char* key) { add(result_ == 0 ? static_cast<const char*>(key) : nullptr); }

void ArgumentWriter::add(float* value) {
  if (value == nullptr || result_ != 0) return add_null();
  begin_value();
  fmt::format_to(std::back_inserter(text_), "{}", *value);
}

// A name that anybody could open the event by.
void ArgumentWriter::add(const acl::aclrtIpcEventHandle& handle) {
  begin_value();
  add_hash(handle.reserved, sizeof handle.reserved);
}

void ArgumentWriter::add(acl::aclrtIpcEventHandle* handle) {
  if (handle == nullptr || result_ != 0) return add_null();
  add(*handle);
}

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

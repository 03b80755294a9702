// SPDX-License-Identifier: Apache-2.0
// The arguments of a call as a JSON object, for the journal. Names come from the entry list, values by their type; what
// a call wrote through a pointer is shown when it succeeded. Keys, and tokens that are numbers, are shown by a hash:
// enough to follow one through the journals of two processes, and not enough to import it.
#pragma once

#include <devshare/acl/table.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace devshare::host {

class ArgumentWriter {
 public:
  ArgumentWriter(acl::Entry call, acl::aclError result);

  void add(const char* text);
  void add(char* key);
  void add(const void* address);
  void add(void* address) { add(static_cast<const void*>(address)); }
  void add(void** address);
  void add(acl::aclrtServerPid* servers) { add(static_cast<const void*>(servers)); }
  void add(std::int32_t* value);
  void add(std::uint32_t* value) { add_pointee(value); }
  void add(std::uint64_t* value);
  void add(const acl::aclrtPhysicalMemProp* asked);  // the caller's: shown also when the call was refused
  void add(acl::aclrtPhysicalMemProp* property);
  void add(acl::aclrtMemAccessDesc* first);
  void add(acl::aclrtMemLocation* location);
  void add(acl::aclrtPtrAttributes* attributes);
  void add(float* value);
  void add(const acl::aclrtIpcEventHandle& handle);
  void add(acl::aclrtIpcEventHandle* handle);
  void add(std::int32_t value) { add_number(value); }
  void add(std::uint32_t value) { add_number(value); }
  void add(std::uint64_t value);

  std::string take() &&;

 private:
  template <class T>
  void add_number(T value);
  template <class T>
  void add_pointee(const T* value);
  void begin_value();
  void add_null();
  void append(const acl::aclrtPhysicalMemProp& property);
  void append(const acl::aclrtMemAccessDesc& desc);
  void append(const acl::aclrtMemLocation& location);
  void append(const acl::aclrtPtrAttributes& attributes);
  template <class T>
  void add_struct(const T* value);
  bool begin_token();
  void add_hash(const void* bytes, std::size_t count);

  acl::Entry call_;
  acl::aclError result_;
  std::string_view names_;  // of the parameters not yet added, as they stand in the list
  std::string_view name_;   // of the one being added
  std::string text_ = "{";
};

template <class... Arguments>
std::string arguments_as_json(acl::Entry call, acl::aclError result, Arguments... arguments) {
  ArgumentWriter writer(call, result);
  (writer.add(arguments), ...);
  return std::move(writer).take();
}

}  // namespace devshare::host

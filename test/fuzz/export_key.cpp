// SPDX-License-Identifier: Apache-2.0
// Whatever a program hands in as a key: it is read to its NUL and no further, and is refused or spelt exactly so.
#include "host/key.hpp"

#include <cstdlib>
#include <cstring>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace devshare::host;
  std::vector<char> key;
  key.reserve(size + 1);
  key.assign(data, data + size);
  key.push_back('\0');
  for (const KeyForm form : {KeyForm::text, KeyForm::binary}) {
    const auto name = decode_key(key.data(), form);
    if (name && std::strcmp(encode_key(*name, form).data(), key.data()) != 0) std::abort();
  }
  return 0;
}

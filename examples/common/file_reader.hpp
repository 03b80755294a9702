// SPDX-License-Identifier: Apache-2.0
// Reads a file piece by piece. Failures are std::system_error.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>

namespace examples {

class FileReader {
 public:
  explicit FileReader(const std::string& path)
      : path_(path), size_(std::filesystem::file_size(path)), file_(std::fopen(path.c_str(), "rbe")) {
    if (file_ == nullptr) throw std::system_error(errno, std::generic_category(), path);
    std::setvbuf(file_, nullptr, _IONBF, 0);  // the pieces are large, and the caller's own
  }
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;
  ~FileReader() { std::fclose(file_); }

  std::size_t size() const noexcept { return size_; }

  // The next bytes, as many as fit into `room`; empty at the end.
  std::span<const std::byte> next(std::span<std::byte> room) {
    const std::size_t count = std::fread(room.data(), 1, room.size(), file_);
    if (std::ferror(file_) != 0) throw std::system_error(errno, std::generic_category(), path_);
    return room.first(count);
  }

 private:
  std::string path_;
  std::size_t size_;
  std::FILE* file_;
};

}  // namespace examples

// SPDX-License-Identifier: Apache-2.0
// Which file a descriptor or a name means. A program that closes all descriptors (a daemon at its start) frees our
// numbers for files of its own: whoever keeps a descriptor for long asks before using it.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

namespace devshare::host {

struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;

  bool operator==(const FileIdentity&) const = default;

  static FileIdentity of(int fd) noexcept {  // {0, 0} when it is not open
    struct stat info {};
    return ::fstat(fd, &info) == 0 ? FileIdentity{info.st_dev, info.st_ino} : FileIdentity{};
  }
  static FileIdentity of(int directory, const char* name) noexcept {  // {0, 0} when there is none
    struct stat info {};
    return ::fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) == 0 ? FileIdentity{info.st_dev, info.st_ino}
                                                                       : FileIdentity{};
  }
};

}  // namespace devshare::host

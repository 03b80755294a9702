// SPDX-License-Identifier: Apache-2.0
// The same exchange as programs write it by hand today, over ACL alone: a socket, the pids, a key, an acknowledgement. It
// is here to be compared with lend.cpp and borrow.cpp, is compiled by the tests and run by nobody.
//
// What it does not do, and each of which has been somebody's bug: check who connects (any user may, and any process may
// claim any pid); serve a second importer, or notice that the first has died, without hanging; tell an importer why it
// was refused; stop waiting after a time; survive a stale socket, or leave another program's alone; hear of the exporter's
// death; keep the memory when it cannot be closed; go on with the exporter's work while it waits.
#include <acl/acl.h>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

namespace {

constexpr std::size_t key_size = 65;

struct Offer {
  char key[key_size];
  std::uint64_t bytes;
  std::int32_t device;
};

bool send_all(int fd, const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = ::send(fd, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int fd, void* data, std::size_t size) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = ::recv(fd, at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  return address;
}

int listen_at(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const sockaddr_un address = address_of(path);
  ::unlink(path.c_str());  // whatever it is
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || ::listen(fd, 1) != 0) {
    ::close(fd);
    return -1;
  }
  return fd;
}

int connect_to(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const sockaddr_un address = address_of(path);
  for (int tries = 0; tries < 100; ++tries) {
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
    ::usleep(100'000);
  }
  ::close(fd);
  return -1;
}

}  // namespace

// The exporter: gives one importer its memory, and waits until that has closed it.
int export_by_hand(const std::string& path, void* memory, std::size_t bytes, std::int32_t device) {
  Offer offer{};
  offer.bytes = bytes;
  offer.device = device;
  if (aclrtIpcMemGetExportKey(memory, bytes, offer.key, key_size, 0) != 0) return 1;
  const int listening = listen_at(path);
  if (listening < 0) {
    aclrtIpcMemClose(offer.key);
    return 2;
  }
  const int importer = ::accept(listening, nullptr, nullptr);
  std::int32_t pid = 0;
  if (importer < 0 || !receive_all(importer, &pid, sizeof pid)) {
    ::close(listening);
    aclrtIpcMemClose(offer.key);
    return 3;
  }
  if (aclrtIpcMemSetImportPid(offer.key, &pid, 1) != 0) {
    ::close(importer);
    ::close(listening);
    aclrtIpcMemClose(offer.key);
    return 4;
  }
  char acknowledged = 0;
  const bool served = send_all(importer, &offer, sizeof offer) &&
                      receive_all(importer, &acknowledged, 1) &&  // it has imported
                      receive_all(importer, &acknowledged, 1);    // it has closed
  ::close(importer);
  ::close(listening);
  ::unlink(path.c_str());
  if (aclrtIpcMemClose(offer.key) != 0) return 5;
  return served ? 0 : 6;
}

// The importer: uses the memory once.
int import_by_hand(const std::string& path, std::int32_t device, void (*use)(void* memory, std::size_t bytes)) {
  if (aclrtSetDevice(device) != 0) return 1;
  std::int32_t pid = 0;
  if (aclrtDeviceGetBareTgid(&pid) != 0) return 2;
  const int exporter = connect_to(path);
  if (exporter < 0) return 3;
  Offer offer{};
  if (!send_all(exporter, &pid, sizeof pid) || !receive_all(exporter, &offer, sizeof offer)) {
    ::close(exporter);
    return 4;
  }
  void* memory = nullptr;
  const auto code = aclrtIpcMemImportByKey(&memory, offer.key, 1);
  if (code != 0) {
    std::fprintf(stderr, "import failed: %d\n", static_cast<int>(code));  // 507899, whatever it was
    ::close(exporter);
    return 5;
  }
  const char done = 1;
  send_all(exporter, &done, 1);
  use(memory, offer.bytes);
  const bool closed = aclrtIpcMemClose(offer.key) == 0;
  send_all(exporter, &done, 1);
  ::close(exporter);
  return closed ? 0 : 6;
}

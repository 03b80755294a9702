// SPDX-License-Identifier: Apache-2.0
#include "state_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <system_error>
#include <utility>

namespace devshare::host {
namespace {

constexpr off_t file_lock_byte = 0;
constexpr off_t first_slot_byte = 1;

std::string in_words(int error) { return std::generic_category().message(error); }

struct flock byte_of(short type, off_t byte) noexcept {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

off_t byte_of_slot(std::size_t slot) noexcept { return first_slot_byte + static_cast<off_t>(slot); }

bool set_lock(int fd, short type, off_t byte) noexcept {
  struct flock lock = byte_of(type, byte);
  int done = 0;
  do {
    done = ::fcntl(fd, F_SETLK, &lock);
  } while (done != 0 && errno == EINTR);
  return done == 0;
}

std::int64_t now_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// A file of ours and nobody else's.
std::string distrust(int file) {
  struct stat info {};
  if (::fstat(file, &info) != 0) return in_words(errno);
  if (!S_ISREG(info.st_mode)) return "it is no regular file";
  if (info.st_uid != ::geteuid())
    return fmt::format("it belongs to user {} and not to user {}", info.st_uid, ::geteuid());
  if ((info.st_mode & 077) != 0) return fmt::format("its mode is {:03o}, and must be 600", info.st_mode & 0777);
  if (info.st_nlink > 1) return "it has more than one name";
  return {};
}

}  // namespace

StateFile::StateFile(StateFile&& other) noexcept { swap(other); }

StateFile& StateFile::operator=(StateFile&& other) noexcept {
  StateFile taken(std::move(other));
  swap(taken);
  return *this;
}

void StateFile::swap(StateFile& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(file_identity_, other.file_identity_);
  std::swap(directory_, other.directory_);
  std::swap(directory_identity_, other.directory_identity_);
  std::swap(name_, other.name_);
  std::swap(mapping_, other.mapping_);
}

StateFile::~StateFile() {
  close_descriptors();
  if (mapping_ != nullptr) ::munmap(mapping_, state_size);
}

void StateFile::close_descriptors() noexcept {
  // A number that the program has closed behind our back and used again is not ours to close.
  if (file_ && FileIdentity::of(file_.get()) != file_identity_) (void)file_.release();
  if (directory_ && FileIdentity::of(directory_.get()) != directory_identity_) (void)directory_.release();
  file_ = UniqueFd();
  directory_ = UniqueFd();
}

StateFile StateFile::open(StateDirectory directory, std::uint64_t machine, std::uint32_t deadline_ms,
                          std::string* refused) {
  StateFile opened;
  opened.directory_ = std::move(directory.descriptor);
  opened.directory_identity_ = FileIdentity::of(opened.directory_.get());
  // Machines with other devices, and other layouts of this file, are other files: they do not meet by accident.
  opened.name_ = fmt::format("devices-{:016x}", machine);
  const std::string path = fmt::format("{}/{}", directory.path, opened.name_);
  for (int attempt = 0; attempt < 100; ++attempt) {
    opened.file_ = UniqueFd(::openat(opened.directory_.get(), opened.name_.c_str(),
                                     O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600));
    if (!opened.file_) {
      *refused = fmt::format("{} cannot be opened: {}", path, in_words(errno));
      return {};
    }
    opened.file_identity_ = FileIdentity::of(opened.file_.get());
    if (const std::string why = distrust(opened.file_.get()); !why.empty()) {
      *refused = fmt::format("{} is not trusted: {}", path, why);
      return {};
    }
    if (!opened.lock(deadline_ms)) return {};
    if (!opened.named()) continue;  // the last process out took it away while we waited for the lock
    if (const std::string why = opened.initialise(machine); !why.empty()) {
      *refused = fmt::format("{} cannot be used: {}", path, why);
      return {};
    }
    opened.unlock();
    return opened;
  }
  *refused = fmt::format("{} goes away whenever it is opened", path);
  return {};
}

// With the lock held. Nothing is touched through the mapping that has no storage: a full file system would answer with
// SIGBUS.
std::string StateFile::initialise(std::uint64_t machine) {
  struct stat info {};
  if (::fstat(file_.get(), &info) != 0) return in_words(errno);
  if (info.st_size != 0 && info.st_size != static_cast<off_t>(state_size)) {
    return fmt::format("its size is {}, and must be {}", info.st_size, state_size);
  }
  if (info.st_size == 0 && ::ftruncate(file_.get(), static_cast<off_t>(state_size)) != 0) return in_words(errno);
  if (!reserve(0)) return in_words(errno);
  void* const mapped = ::mmap(nullptr, state_size, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (mapped == MAP_FAILED) return in_words(errno);
  mapping_ = static_cast<std::byte*>(mapped);
  std::uint64_t found = 0;
  if (!header().machine.compare_exchange_strong(found, machine) && found != machine) {
    return "it is no state file of this machine";
  }
  if (header().claims_stored.load() == 0) {
    if (!reserve_claims(claims_stored_at_once)) return in_words(errno);
    header().claims_stored.store(claims_stored_at_once);
  }
  const bool sound = header().high_water.load() <= slot_count && header().claims_stored.load() <= shared_claim_count &&
                     header().claims_end.load() <= header().claims_stored.load();
  return sound ? "" : "it is damaged";
}

bool StateFile::intact() const noexcept {
  return file_ && FileIdentity::of(file_.get()) == file_identity_ &&
         FileIdentity::of(directory_.get()) == directory_identity_;
}

bool StateFile::named() const noexcept { return FileIdentity::of(directory_.get(), name_.c_str()) == file_identity_; }

bool StateFile::lock(std::uint32_t deadline_ms) noexcept {
  // Asked for again and again, since waiting in the kernel has no deadline, and its holder may have been stopped.
  const std::int64_t give_up = now_ns() + std::int64_t{deadline_ms} * 1'000'000;
  long nap_ns = 20'000;
  for (int attempt = 0; !set_lock(file_.get(), F_WRLCK, file_lock_byte); ++attempt) {
    if (errno != EAGAIN && errno != EACCES) return false;
    if (attempt < 4) {
      ::sched_yield();
      continue;
    }
    if (now_ns() > give_up) return false;
    const timespec nap{0, nap_ns};
    ::nanosleep(&nap, nullptr);
    nap_ns = std::min(nap_ns * 2, 1'000'000L);
  }
  return true;
}

void StateFile::unlock() noexcept { (void)set_lock(file_.get(), F_UNLCK, file_lock_byte); }

bool StateFile::slot_held_by_other(std::size_t slot) const noexcept {
  struct flock lock = byte_of(F_WRLCK, byte_of_slot(slot));
  // When the kernel does not say, the process counts as alive: its bytes may be real.
  return ::fcntl(file_.get(), F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

bool StateFile::take_slot(std::size_t slot) noexcept { return set_lock(file_.get(), F_WRLCK, byte_of_slot(slot)); }

void StateFile::drop_slot(std::size_t slot) noexcept { (void)set_lock(file_.get(), F_UNLCK, byte_of_slot(slot)); }

bool StateFile::reserve(std::size_t slots) noexcept {
  // Not posix_fallocate: where the file system cannot, that writes into pages that other processes are changing.
  return ::fallocate(file_.get(), 0, 0, static_cast<off_t>(slots_offset + slots * sizeof(StateSlot))) == 0;
}

bool StateFile::reserve_claims(std::size_t claims) noexcept {
  return ::fallocate(file_.get(), 0, static_cast<off_t>(claims_offset),
                     static_cast<off_t>(claims * sizeof(SharedClaim))) == 0;
}

void StateFile::remove() noexcept {
  if (named()) (void)::unlinkat(directory_.get(), name_.c_str(), 0);
}

}  // namespace devshare::host

// SPDX-License-Identifier: Apache-2.0
#include "control_page.hpp"

#include "backing.hpp"
#include "profile.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <utility>

namespace devshare::host {

struct ControlLayout {
  std::uint64_t magic;
  std::uint64_t instance;
  alignas(64) pthread_mutex_t death;
  alignas(64) std::atomic<std::uint64_t> tokens[token_words];
  alignas(64) std::atomic<std::uint64_t> slots[most_keys];
};

namespace {

constexpr std::uint64_t layout_magic = 0x3220676170767364;  // changes with the layout
constexpr int wanted_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

const std::atomic<std::uint32_t>* death_word(const ControlLayout* layout) noexcept {
#ifdef __GLIBC__
  static_assert(sizeof layout->death.__data.__lock == sizeof(std::uint32_t));
  return reinterpret_cast<const std::atomic<std::uint32_t>*>(&layout->death.__data.__lock);
#else
  static_cast<void>(layout);
  return nullptr;  // where the futex lies inside the mutex is not known here: only closed keys are noticed
#endif
}

bool make_robust(pthread_mutex_t* mutex) noexcept {
  pthread_mutexattr_t attributes;
  if (::pthread_mutexattr_init(&attributes) != 0) return false;
  const bool made = ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0 &&
                    ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0 &&
                    ::pthread_mutex_init(mutex, &attributes) == 0;
  ::pthread_mutexattr_destroy(&attributes);
  return made;
}

}  // namespace

int ControlPage::create(std::uint64_t instance, std::unique_ptr<ControlPage>* out) {
  UniqueFd file(::memfd_create("devshare-control", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const bool sealable = static_cast<bool>(file);
  if (sealable) {
    if (::ftruncate(file.get(), sizeof(ControlLayout)) != 0) return errno;
  } else {
    const int error = errno;
    if (!profile().backing_fallback_allowed || error == EMFILE || error == ENFILE) return error;
    if (const int none = make_unsealed(sizeof(ControlLayout), &file)) return none;  // B099
  }
  void* memory = ::mmap(nullptr, sizeof(ControlLayout), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return errno;
  auto* layout = static_cast<ControlLayout*>(memory);  // a fresh file reads as zeros: no slot is live
  layout->magic = layout_magic;
  layout->instance = instance;
  if (!make_robust(&layout->death)) {
    ::munmap(memory, sizeof(ControlLayout));
    return ENOTSUP;
  }
  // From here on nobody else can write. Kernels before 5.1 lack that seal; there importers are trusted not to.
  if (sealable && ((::fcntl(file.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE) != 0 && errno != EINVAL) ||
                   ::fcntl(file.get(), F_ADD_SEALS, wanted_seals) != 0)) {
    const int error = errno;
    ::munmap(memory, sizeof(ControlLayout));
    return error;
  }
  out->reset(new ControlPage(std::move(file), layout));
  return 0;
}

ControlPage::~ControlPage() { ::munmap(layout_, sizeof(ControlLayout)); }

std::uint64_t ControlPage::turn_on(std::uint32_t slot) noexcept {
  const std::uint64_t word = ((layout_->slots[slot].load(std::memory_order_relaxed) | 1) + 1) | 1;
  layout_->slots[slot].store(word, std::memory_order_release);
  return word;
}

void ControlPage::turn_off(std::uint32_t slot) noexcept {
  layout_->slots[slot].fetch_and(~std::uint64_t{1}, std::memory_order_seq_cst);
}

std::uint64_t ControlPage::token_word(std::uint32_t slot) const noexcept {
  return layout_->tokens[slot % token_words].load(std::memory_order_relaxed);
}

void ControlPage::token_ends(std::uint32_t slot) noexcept { layout_->tokens[slot % token_words].fetch_add(1); }

ExporterWatch ControlPage::watch(std::uint32_t slot, std::uint64_t expected) const noexcept {
  return {&layout_->slots[slot], expected, nullptr};
}

void ControlPage::hold_death_word() noexcept { ::pthread_mutex_lock(&layout_->death); }

void ControlPage::release_death_word() noexcept { ::pthread_mutex_unlock(&layout_->death); }

std::shared_ptr<const ControlPageView> ControlPageView::map(const UniqueFd& file, std::uint64_t instance) {
  struct stat status {};
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  const bool sealed = seals >= 0 && (seals & wanted_seals) == wanted_seals;
  if (!sealed && !profile().backing_fallback_allowed) return nullptr;
  if (::fstat(file.get(), &status) != 0 || status.st_size != static_cast<off_t>(sizeof(ControlLayout))) return nullptr;
  void* memory = ::mmap(nullptr, sizeof(ControlLayout), PROT_READ, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return nullptr;
  const auto* layout = static_cast<const ControlLayout*>(memory);
  std::shared_ptr<const ControlPageView> view(new ControlPageView(layout));
  if (layout->magic != layout_magic || layout->instance != instance) return nullptr;
  return view;
}

ControlPageView::~ControlPageView() { ::munmap(const_cast<ControlLayout*>(layout_), sizeof(ControlLayout)); }

ExporterWatch ControlPageView::watch(std::uint32_t slot, std::uint64_t expected, bool watch_death) const noexcept {
  return {&layout_->slots[slot], expected, watch_death ? death_word(layout_) : nullptr};
}

ExporterWatch ControlPageView::token_watch(std::uint32_t slot, std::uint64_t expected) const noexcept {
  return {&layout_->tokens[slot % token_words], expected, death_word(layout_)};
}

}  // namespace devshare::host

// SPDX-License-Identifier: Apache-2.0
// What several objects of a process hold together, opened in the runtime once and closed with the last of them.
//
// Who comes first opens, without a lock; whoever comes meanwhile waits for its result, whatever it is (B076). While the
// last one closes, newcomers wait too, so that nobody meets a thing that is half gone.
#pragma once

#include "../core/locks.hpp"

#include <devshare/result.hpp>
#include <devshare/ticket.hpp>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>

namespace devshare::detail {

// A ticket's name of the memory: the mechanism and its payload.
inline std::string name_of_memory(const TicketFields& fields) {
  std::string name(1, static_cast<char>(fields.mechanism));
  name.append(reinterpret_cast<const char*>(fields.payload.data()), fields.payload_size);
  return name;
}

// The base of a record in a table of SharedOpens. Everything here is guarded by Lock::imports.
struct SharedOpen {
  enum class State : std::uint8_t { opening, open, closing, failed };

  std::string name;
  State state = State::opening;
  bool was_open = false;
  std::uint32_t references = 0;                 // objects
  std::uint32_t waiters = 0;                    // threads that want to know what becomes of it
  Error error{Errc::refused, Operation::none};  // why it failed, for those who waited
};

// Immortal; one for each kind of record.
template <class Record>
class SharedOpens {
 public:
  using State = SharedOpen::State;

  // The record of this name with one more reference. `admits(record)` says whether an open one may be shared;
  // `make()` gives a new record, and `open(record)`, called without a lock, opens it.
  template <class Admits, class Make, class Open>
  Result<Record*> acquire(const std::string& name, Admits admits, Make make, Open open) {
    Record* record = nullptr;
    {
      std::unique_lock lock(mutex_of(Lock::imports));
      while (Record* const found = find(name)) {
        if (found->state == State::open) {
          DEVSHARE_CHECK(admits(*found));
          ++found->references;
          return found;
        }
        DEVSHARE_CHECK(wait_for(found, lock));
      }
      record = make();
      record->name = name;
      record->references = 1;
      records_.emplace(name, record);
    }
    const Result<void> opened = open(*record);
    const std::lock_guard lock(mutex_of(Lock::imports));
    if (opened) {
      record->state = State::open;
      record->was_open = true;
      changed_.notify_all();
      return record;
    }
    const Error error = opened.error();
    end(record, error);
    return error;
  }

  // Gives one reference up. With the last one `close(record)` is called, without a lock. Refused, the record is open as
  // before, with that reference, if something is `left(record, error)`; in all other cases the reference is given up,
  // and `reference` null.
  template <class Close, class Left>
  Result<void> release(Record*& reference, Close close, Left left) {
    Record* const record = reference;
    {
      const std::lock_guard lock(mutex_of(Lock::imports));
      if (--record->references != 0) {
        reference = nullptr;
        return {};
      }
      record->state = State::closing;
      record->references = 1;
    }
    const Result<void> closed = close(*record);
    const std::lock_guard lock(mutex_of(Lock::imports));
    if (!closed && left(*record, closed.error())) {
      record->state = State::open;
      changed_.notify_all();
    } else {
      end(record, record->error);
      reference = nullptr;
    }
    return closed;
  }

  // In a session that is over, or in a forked child. What the record holds is abandoned with it, after the lock: that
  // may be a record of another table.
  void abandon(Record* record) {
    {
      const std::lock_guard lock(mutex_of(Lock::imports));
      if (--record->references != 0) return;
      forget(record);  // a session that somebody else ended is noticed late: the table still has its records
      record->state = State::failed;
      if (record->waiters != 0) return changed_.notify_all();  // the last of them deletes it
    }
    delete record;
  }

  // The records of a session that is over are forgotten; their objects are inert and still have them. Lock::imports is
  // held by the caller, here and below.
  void forget_all() noexcept { records_.clear(); }

  // In a forked child, where the threads that waited do not exist.
  void forked() noexcept {
    records_.clear();
    new (&changed_) std::condition_variable;
  }

  template <class Visit>
  void for_each_open(Visit visit) const {
    for (const auto& [name, record] : records_) {
      if (record->state == State::open) visit(*record);
    }
  }

 private:
  Record* find(const std::string& name) const {
    const auto found = records_.find(name);
    return found != records_.end() ? found->second : nullptr;
  }

  // Until the record is no longer what it was. An opening that failed has failed for whoever waited for it.
  Result<void> wait_for(Record* record, std::unique_lock<std::mutex>& lock) {
    const State waited_for = record->state;
    ++record->waiters;
    changed_.wait(lock, [&] { return record->state != waited_for; });
    --record->waiters;
    const bool it_failed = record->state == State::failed && !record->was_open;  // else it closed before we woke
    const Error error = record->error;
    if (unused(*record)) {
      lock.unlock();  // as in abandon()
      delete record;
      lock.lock();
    }
    if (it_failed) return error;
    return {};
  }

  // Takes a record out of the table, unless it was forgotten and another has its place.
  void forget(Record* record) {
    const auto found = records_.find(record->name);
    if (found != records_.end() && found->second == record) records_.erase(found);
  }

  // Drops the last reference of a record that holds nothing any more, and takes it out of the table.
  void end(Record* record, const Error& error) {
    record->state = State::failed;
    record->error = error;
    forget(record);
    changed_.notify_all();
    --record->references;
    if (unused(*record)) delete record;
  }

  static bool unused(const Record& record) {
    return record.state == State::failed && record.references == 0 && record.waiters == 0;
  }

  std::unordered_map<std::string, Record*> records_;
  std::condition_variable changed_;
};

}  // namespace devshare::detail

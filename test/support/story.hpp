// SPDX-License-Identifier: Apache-2.0
// A story of several processes, told in one test case.
//
//   Story story;
//   story.actor("A", [](Actor& me) {
//     ...
//     me.send("B", ticket);
//     me.step("exported");
//     me.pause_until("B", "closed");
//     me.expect(close(key) == 0, "A closes its key");
//   });
//   story.actor("B", [](Actor& me) { auto ticket = me.receive<Ticket>("A"); ... });
//   story.kill("B", at("imported"));
//   story.run();
//
// Each actor is a forked child of its own; the process that runs Catch2 only supervises and never touches the runtime
// under test. Everything an actor says goes through the supervisor: a step is a round trip, so a kill planned for a
// step happens exactly there, and what an actor said before it died is not lost. run() fails the case with every
// failed expectation, unexpected exit, signal, planned event that never came, and hang, each in words; a hang is ended
// by a watchdog.
//
// An actor that goes on after fork must not use Catch2's macros: it has expect() and must().
#pragma once

#include "isolation.hpp"
#include "temp_directory.hpp"

#include <fmt/core.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace devshare::test {

using Bytes = std::vector<std::byte>;

// Messages, given values and texts are at most this long.
inline constexpr std::size_t max_story_message = std::size_t{96} * 1024;

// A value in a failure's text: formatted where it can be, an enum as its number, a refusal as its error.
template <class T>
std::string in_words(const T& value) {
  if constexpr (requires { value.error(), value.kind(); }) {
    return in_words(value.error());
  } else if constexpr (fmt::is_formattable<T>::value) {
    return fmt::format("{}", value);
  } else if constexpr (std::is_enum_v<T>) {
    return fmt::format("{}", static_cast<long long>(value));
  } else {
    return "(a value that cannot be printed)";
  }
}

namespace story {
class Channel;
struct Frame;
}  // namespace story

// What a role has in hand. Its functions may be called from any thread of the actor; those that wait keep others out
// while they do.
class Actor {
 public:
  const std::string& name() const noexcept { return name_; }

  // Sends to an actor by name; never waits. A message to one that has ended is lost, as with any dead peer.
  void send_bytes(std::string_view to, const void* data, std::size_t size);
  template <class T>
  void send(std::string_view to, const T& value) {
    if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      const std::string_view text(value);
      send_bytes(to, text.data(), text.size());
    } else if constexpr (std::is_same_v<T, Bytes>) {
      send_bytes(to, value.data(), value.size());
    } else {
      static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>, "send values, not objects that own");
      send_bytes(to, &value, sizeof(T));
    }
  }

  // Waits for the next message from that actor. When it ends without having sent one, this actor fails and ends.
  Bytes receive_bytes(std::string_view from);
  template <class T>
  T receive(std::string_view from) {
    const Bytes bytes = receive_bytes(from);
    if constexpr (std::is_same_v<T, Bytes>) {
      return bytes;
    } else if constexpr (std::is_same_v<T, std::string>) {
      return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    } else {
      static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>, "receive values");
      if (bytes.size() != sizeof(T)) wrong_size(from, bytes.size(), sizeof(T));
      T value;
      std::memcpy(static_cast<void*>(&value), bytes.data(), sizeof(T));
      return value;
    }
  }

  // Says that this actor has got so far. What is planned for this moment has happened when it returns, if it returns.
  void step(std::string_view name);

  // Wait until another actor has reached a step (this one fails and ends if that one ends first), or has ended: then
  // it is gone for the kernel too, not only for us.
  void pause_until(std::string_view who, std::string_view step);
  void pause_until_ended(std::string_view who);

  // The same for an actor that may end first, as in a story of kills: then there is no step, and no message.
  bool sees_step(std::string_view who, std::string_view step);
  std::optional<Bytes> receive_if_sent(std::string_view from);

  // The process id of another actor, as the supervisor sees it.
  pid_t pid_of(std::string_view who);

  // Records a failure unless `condition`; returns it.
  bool expect(bool condition, std::string_view sentence, const char* file = __builtin_FILE(),
              int line = __builtin_LINE());
  template <class A, class B>
  bool expect_equal(const A& actual, const B& expected, std::string_view sentence,
                    const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    if (actual == expected) return expect(true, sentence, file, line);
    return unequal(in_words(actual), in_words(expected), sentence, file, line);
  }

  // The value in a result, or the end of this actor with the error in words.
  template <class R>
  auto must(R result, std::string_view sentence, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    if (!result) fail(std::string(sentence) + ": " + in_words(result.error()), file, line);
    expect(true, sentence, file, line);
    if constexpr (requires { requires !std::is_void_v<decltype(*std::move(result))>; }) return *std::move(result);
  }

  // Records a failure and ends this actor, with no destructor run.
  [[noreturn]] void fail(std::string_view sentence, const char* file = __builtin_FILE(), int line = __builtin_LINE());

  // Hands a value to the supervisor, for Story::given.
  void give_bytes(std::string_view key, const void* data, std::size_t size);
  template <class T>
  void give(std::string_view key, const T& value) {
    if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      const std::string_view text(value);
      give_bytes(key, text.data(), text.size());
    } else {
      static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>, "give values, not objects that own");
      give_bytes(key, &value, sizeof(T));
    }
  }

  // Becomes another program; the story goes on with its exit status and its output.
  [[noreturn]] void exec(const std::vector<std::string>& command);

 private:
  friend class Story;
  Actor(std::string name, story::Channel& channel);
  bool unequal(const std::string& actual, const std::string& expected, std::string_view sentence, const char* file,
               int line);
  [[noreturn]] void wrong_size(std::string_view from, std::size_t size, std::size_t expected);
  story::Frame ask(const story::Frame& frame);
  story::Frame ask_what_may_never_be(const story::Frame& frame);
  void tell(const story::Frame& frame);

  std::string name_;
  story::Channel& channel_;
  std::mutex mutex_;
};

// A moment of a story: an actor's step, and possibly a time after it. Without `who` it is a step of the actor that the
// plan is about.
struct Moment {
  std::string who;
  std::string step;
  std::chrono::microseconds later{0};

  Moment plus(std::chrono::microseconds time) const { return {who, step, later + time}; }
};
inline Moment at(std::string step) { return {"", std::move(step)}; }
inline Moment at(std::string who, std::string step) { return {std::move(who), std::move(step)}; }

// How an actor's process ended, or is to end.
struct Ending {
  enum class Kind { returned, exited, killed } kind = Kind::returned;
  int number = 0;  // exit code or signal
  friend bool operator==(const Ending&, const Ending&) = default;
};
inline Ending by_signal(int signal) { return {Ending::Kind::killed, signal}; }
inline Ending with_code(int code) { return {Ending::Kind::exited, code}; }

struct Role {
  Isolation isolation = Isolation::none;
  pid_t pid = 0;  // a number from unused_pid(), or any
};

class Story {
 public:
  // Under a sanitizer the time is multiplied by four.
  explicit Story(std::chrono::seconds watchdog = std::chrono::seconds(60));
  ~Story();
  Story(const Story&) = delete;
  Story& operator=(const Story&) = delete;

  void actor(std::string name, std::function<void(Actor&)> part) { actor(std::move(name), Role{}, std::move(part)); }
  void actor(std::string name, Role role, std::function<void(Actor&)> part);
  // An actor that is another program from the start.
  void program(std::string name, std::vector<std::string> command);

  // Plans. Every one must happen, or the story fails.
  void kill(std::string who, Moment moment);    // SIGKILL; it is dead, and reaped, when the step of another returns
  void stop(std::string who, Moment moment);    // SIGSTOP; it has stopped when the step of another returns
  void resume(std::string who, Moment moment);  // SIGCONT
  void start(std::string who, Moment moment);   // does not exist before that moment
  void ends(std::string who, Ending how);       // instead of returning from its part; kill() implies it

  // The state directory of all actors of this story, and a place for other files.
  const std::string& state_directory() const noexcept { return state_; }
  std::string file(std::string_view name) const { return directory_.file(name); }

  // Plays the story to its end and returns what went wrong, each as a text. run() does that and fails the Catch2 case
  // with them. A story is played once.
  std::vector<std::string> play();
  void run();

  // Afterwards: what the actors gave, printed and did.
  const Bytes* given_bytes(std::string_view who, std::string_view key) const;
  template <class T>
  T given(std::string_view who, std::string_view key) const {
    const Bytes* bytes = given_bytes(who, key);
    T value{};
    if constexpr (std::is_same_v<T, std::string>) {
      if (bytes != nullptr) value.assign(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    } else {
      static_assert(std::is_trivially_copyable_v<T>);
      if (bytes != nullptr && bytes->size() == sizeof(T)) std::memcpy(&value, bytes->data(), sizeof(T));
    }
    return value;
  }
  std::string output(std::string_view who) const;
  std::vector<std::string> steps() const;  // "A: exported", in the order in which they were reached
  std::size_t checked() const noexcept;    // expectations that were looked at

 private:
  class Stage;
  TempDirectory directory_;
  std::string state_;
  std::unique_ptr<Stage> stage_;
};

}  // namespace devshare::test

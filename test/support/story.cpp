// SPDX-License-Identifier: Apache-2.0
// The supervisor's side of a story: one thread, one poll loop, no lock.
#include "story.hpp"

#include "catch.hpp"
#include "sanitizers.hpp"
#include "story_wire.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <system_error>

namespace devshare::test {

using story::Channel;
using story::Frame;
using story::Op;
using Clock = std::chrono::steady_clock;

namespace {

enum class Action { kill, stop, resume, start };

const char* action_words(Action action) {
  switch (action) {
    case Action::kill: return "killed";
    case Action::stop: return "stopped";
    case Action::resume: return "resumed";
    case Action::start: return "started";
  }
  return "";
}

struct Plan {
  Action action;
  std::string who;
  Moment moment;
  bool happened = false;
};

struct Timer {
  Clock::time_point when;
  std::size_t plan;
};

struct Part {
  enum class State { not_born, alive, ended };

  std::string name;
  Role role;
  std::function<void(Actor&)> play;
  std::string output_path;

  State state = State::not_born;
  Channel channel;
  pid_t child = -1;  // what we wait for: the actor, or the process that stands between in a pid namespace
  pid_t pid = -1;    // the actor
  int pidfd = -1;    // of `child`
  bool waits_for_start = false;
  bool stopped = false;
  bool executes = false;
  bool abandoned = false;
  bool returned = false;
  std::optional<Ending> expected;
  std::vector<std::string> steps;
  std::optional<Frame> question;  // it waits for our answer
  std::map<std::string, std::deque<std::string>> inbox;
  std::map<std::string, Bytes> given;
};

std::string ending_words(const Ending& ending) {
  switch (ending.kind) {
    case Ending::Kind::returned: return "came to its end";
    case Ending::Kind::exited: return fmt::format("exited with code {}", ending.number);
    case Ending::Kind::killed: return fmt::format("was ended by signal {} ({})", ending.number, ::strsignal(ending.number));
  }
  return {};
}

std::string first_line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The one letter the kernel has for what a process does.
char process_state(pid_t pid) {
  const std::string stat = first_line_of(fmt::format("/proc/{}/stat", pid));
  const std::size_t name_end = stat.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= stat.size() ? '?' : stat[name_end + 2];
}

std::string tail_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream all;
  all << file.rdbuf();
  constexpr std::size_t most = 6000;
  std::string text = all.str();
  if (text.size() > most) text = "..." + text.substr(text.size() - most);
  return text;
}

void redirect_output(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0 || ::dup2(fd, 1) < 0 || ::dup2(fd, 2) < 0) ::_exit(70);
  ::close(fd);
}

void default_signals() {
  if (under_sanitizer()) return;  // its handlers print what happened
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTERM, SIGINT}) ::signal(signal, SIG_DFL);
}

}  // namespace

class Story::Stage {
 public:
  std::chrono::seconds limit{};
  std::string state;
  std::vector<std::unique_ptr<Part>> parts;
  std::vector<Plan> plans;
  std::vector<std::string> steps;
  std::vector<std::string> problems;
  std::size_t checked = 0;
  bool played = false;

  Part* find(std::string_view name) {
    for (const auto& part : parts) {
      if (part->name == name) return part.get();
    }
    return nullptr;
  }

  void play() {
    std::cout.flush();
    std::fflush(nullptr);  // else each child would print it again
    deadline_ = Clock::now() + limit;
    check_plans();
    if (!problems.empty()) return;
    for (const auto& part : parts) {
      if (!part->waits_for_start) give_birth(*part);
    }
    while (anybody_alive()) {
      if (only_the_stopped_remain()) {
        end_everybody();
        break;
      }
      if (Clock::now() >= deadline_) {
        report_hang();
        end_everybody();
        break;
      }
      turn();
    }
    for (const Plan& plan : plans) {
      if (!plan.happened) {
        problems.push_back(fmt::format("{} was to be {} at the step '{}' of {}, which never came", plan.who,
                                       action_words(plan.action), plan.moment.step, plan.moment.who));
      }
    }
    add_outputs();
  }

  void end_everybody() {
    for (const auto& part : parts) {
      if (part->state != Part::State::alive) continue;
      part->expected = by_signal(SIGKILL);
      kill_and_wait(*part);
    }
  }

 private:
  void check_plans() {
    for (Plan& plan : plans) {
      Part* part = find(plan.who);
      if (plan.moment.who.empty()) plan.moment.who = plan.who;
      if (part == nullptr || find(plan.moment.who) == nullptr) {
        problems.push_back(fmt::format("a plan speaks of {} and {}: not both are actors", plan.who, plan.moment.who));
      } else if (plan.action == Action::start) {
        part->waits_for_start = true;
      }
    }
  }

  bool anybody_alive() const {
    return std::any_of(parts.begin(), parts.end(), [](const auto& p) { return p->state == Part::State::alive; });
  }

  // Whoever is stopped for good has no part in the rest; it must not hold the story up.
  bool only_the_stopped_remain() const {
    return timers_.empty() && std::all_of(parts.begin(), parts.end(), [](const auto& p) {
             return p->state != Part::State::alive || p->stopped;
           });
  }

  void turn() {
    std::vector<pollfd> fds;
    std::vector<Part*> owners;
    for (const auto& part : parts) {
      if (part->state != Part::State::alive) continue;
      if (part->channel.fd() >= 0) {
        fds.push_back({part->channel.fd(), POLLIN, 0});
        owners.push_back(part.get());
      }
      fds.push_back({part->pidfd, POLLIN, 0});
      owners.push_back(part.get());
    }
    Clock::time_point next = deadline_;
    for (const Timer& timer : timers_) next = std::min(next, timer.when);
    const auto wait = std::chrono::ceil<std::chrono::microseconds>(next - Clock::now());
    const timespec patience = as_timespec(std::max(wait, std::chrono::microseconds(0)));
    if (::ppoll(fds.data(), fds.size(), &patience, nullptr) < 0 && errno != EINTR) std::abort();
    for (std::size_t i = 0; i < fds.size(); ++i) {
      Part& part = *owners[i];
      if (fds[i].revents == 0 || part.state != Part::State::alive) continue;
      if (fds[i].fd == part.pidfd) {
        bury(part);
      } else if (fds[i].fd == part.channel.fd()) {
        listen(part);
      }
    }
    run_timers();
  }

  static timespec as_timespec(std::chrono::microseconds time) {
    return {static_cast<time_t>(time.count() / 1'000'000), static_cast<long>(time.count() % 1'000'000) * 1000};
  }

  void run_timers() {
    const auto now = Clock::now();
    for (std::size_t i = 0; i < timers_.size();) {
      if (timers_[i].when > now) {
        ++i;
        continue;
      }
      const std::size_t plan = timers_[i].plan;
      timers_.erase(timers_.begin() + static_cast<std::ptrdiff_t>(i));
      carry_out(plans[plan]);
    }
  }

  // Birth ---------------------------------------------------------------------------------------------------------

  void give_birth(Part& part) {
    Channel actor_end;
    if (!Channel::pair(&part.channel, &actor_end)) {
      problems.push_back(fmt::format("no socket pair for {}", part.name));
      return;
    }
    const bool stands_between = has(part.role.isolation, Isolation::pid);
    const pid_t supervisor = ::getpid();
    const pid_t child = part.role.pid != 0 ? fork_as(part.role.pid) : ::fork();
    if (child < 0) {
      problems.push_back(fmt::format("{} could not be started{}", part.name,
                                     part.role.pid != 0 ? " under the number asked for" : ""));
      part.state = Part::State::ended;
      return;
    }
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != supervisor) ::_exit(70);
      live(part, actor_end);
    }
    part.state = Part::State::alive;
    part.child = child;
    part.pid = stands_between ? -1 : child;
    part.pidfd = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
    if (part.pidfd < 0) std::abort();
    for (Frame frame; part.pid < 0 && !part.abandoned && part.channel.receive(&frame, true);) hear(part, frame);
  }

  // The child's way from fork to the actor's function and out again.
  [[noreturn]] void live(Part& part, Channel& channel) {
    ::setpgid(0, 0);
    default_signals();
    for (const auto& other : parts) {
      other->channel.close();
      if (other->pidfd >= 0) ::close(other->pidfd);
    }
    redirect_output(part.output_path);
    ::setenv("DEVSHARE_HOST_STATE", state.c_str(), 1);
    if (part.role.isolation != Isolation::none) enter_isolation(part, channel);

    Actor actor(part.name, channel);
    part.play(actor);
    if (leaks_found()) actor.expect(false, "it leaks memory (see its output)");
    channel.send({Op::returned, {}, {}, {}});
    std::cout.flush();
    std::fflush(nullptr);
    ::_exit(0);
  }

  static void enter_isolation(const Part& part, Channel& channel) {
    std::string error;
    const auto give_up = [&] {
      channel.send({Op::failed, {}, error, {}});
      channel.send({Op::abandoned, {}, {}, {}});
      ::_exit(1);
    };
    if (isolate(part.role.isolation, &error) != 0) give_up();
    if (!has(part.role.isolation, Isolation::pid)) return;
    int gate[2];
    if (::pipe2(gate, O_CLOEXEC) != 0) ::_exit(70);
    const pid_t inner = ::fork();
    if (inner < 0) ::_exit(70);
    if (inner > 0) {
      channel.send({Op::born, {}, {}, {}, inner});
      ::close(gate[0]);
      ::close(gate[1]);
      stand_between(inner, channel);
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    char nothing;
    ::close(gate[1]);
    if (::read(gate[0], &nothing, 1) != 0) ::_exit(70);  // it says nothing before its number is known
    ::close(gate[0]);
    if (finish_isolation_in_child(part.role.isolation, &error) != 0) give_up();
  }

  // Outside a pid namespace nobody but its maker learns the outer number of its first process and its exit status.
  [[noreturn]] static void stand_between(pid_t inner, Channel& channel) {
    channel.close();
    int status = 0;
    while (::waitpid(inner, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) {
      ::signal(WTERMSIG(status), SIG_DFL);
      ::kill(::getpid(), WTERMSIG(status));
    }
    ::_exit(WEXITSTATUS(status));
  }

  // Life ----------------------------------------------------------------------------------------------------------

  void listen(Part& part) {
    Frame frame;
    if (!part.channel.receive(&frame, false)) {
      part.channel.close();  // it has ended or become another program
      return;
    }
    hear(part, frame);
  }

  void hear(Part& part, Frame& frame) {
    switch (frame.op) {
      case Op::send: {
        Part* to = find(frame.who);
        if (to == nullptr) {
          problems.push_back(fmt::format("{} sends to {}, who is no actor", part.name, frame.who));
        } else {
          to->inbox[part.name].push_back(std::move(frame.data));
          consider(*to);
        }
        return;
      }
      case Op::step: reach(part, frame); return;
      case Op::receive:
      case Op::pause:
      case Op::pause_end:
      case Op::pid_of:
        part.question = frame;
        consider(part);
        return;
      case Op::checked: ++checked; return;
      case Op::failed:
        ++checked;
        problems.push_back(fmt::format("{}: {}", part.name, frame.name));
        return;
      case Op::give: {
        Bytes bytes(frame.data.size());
        std::transform(frame.data.begin(), frame.data.end(), bytes.begin(),
                       [](char c) { return static_cast<std::byte>(c); });
        part.given[frame.name] = std::move(bytes);
        return;
      }
      case Op::executes: part.executes = true; return;
      case Op::abandoned: part.abandoned = true; return;
      case Op::returned: part.returned = true; return;
      case Op::born: part.pid = frame.number; return;
      case Op::yes:
      case Op::no: break;
    }
    problems.push_back(fmt::format("{} says something that no actor says", part.name));
  }

  void reach(Part& part, const Frame& frame) {
    part.steps.push_back(frame.name);
    steps.push_back(part.name + ": " + frame.name);
    part.question = frame;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      Plan& plan = plans[i];
      if (plan.happened || plan.moment.who != part.name || plan.moment.step != frame.name) continue;
      if (plan.moment.later.count() > 0) {
        plan.happened = true;
        timers_.push_back({Clock::now() + plan.moment.later, i});
      } else {
        carry_out(plan);
      }
    }
    if (part.state == Part::State::alive) answer(part, {Op::yes, {}, {}, {}});
    consider_all();
  }

  void carry_out(Plan& plan) {
    plan.happened = true;
    Part& part = *find(plan.who);
    if (plan.action == Action::start) {
      give_birth(part);
      return;
    }
    if (part.state != Part::State::alive || part.pid < 0) {
      problems.push_back(
          fmt::format("{} was to be {} at the step '{}' of {}, but {}", part.name, action_words(plan.action),
                      plan.moment.step, plan.moment.who,
                      part.state == Part::State::ended ? "had already ended" : "was not there yet"));
      return;
    }
    switch (plan.action) {
      case Action::kill:
        part.expected = by_signal(SIGKILL);
        kill_and_wait(part);
        break;
      case Action::stop:
        ::kill(part.pid, SIGSTOP);
        for (int tried = 0; tried < 5000 && process_state(part.pid) != 'T'; ++tried) ::usleep(1000);
        part.stopped = true;
        break;
      case Action::resume:
        part.stopped = false;
        ::kill(part.pid, SIGCONT);
        break;
      case Action::start: break;
    }
  }

  // Answers what the part waits for, if it has come or can come no more.
  void consider(Part& part) {
    if (!part.question || part.state != Part::State::alive) return;
    const Frame question = *part.question;
    if (question.op == Op::step) return;
    Part* other = find(question.who);
    if (other == nullptr) {
      answer(part, {Op::no, {}, fmt::format("{} is no actor of this story", question.who), {}});
      return;
    }
    const bool ended = other->state == Part::State::ended;
    if (question.op == Op::receive) {
      std::deque<std::string>& mail = part.inbox[question.who];
      if (!mail.empty()) {
        Frame message{Op::yes, {}, {}, std::move(mail.front())};
        mail.pop_front();
        answer(part, message);
      } else if (ended) {
        answer(part, {Op::no, {}, fmt::format("{} ended without sending what was waited for", question.who), {}});
      }
    } else if (question.op == Op::pause) {
      if (std::find(other->steps.begin(), other->steps.end(), question.name) != other->steps.end()) {
        answer(part, {Op::yes, {}, {}, {}});
      } else if (ended) {
        answer(part, {Op::no, {}, fmt::format("{} ended without reaching '{}'", question.who, question.name), {}});
      }
    } else if (question.op == Op::pause_end) {
      if (ended) answer(part, {Op::yes, {}, {}, {}});
    } else if (other->pid > 0) {
      answer(part, {Op::yes, {}, {}, {}, other->pid});
    } else if (other->state == Part::State::not_born && other->role.pid > 0) {
      answer(part, {Op::yes, {}, {}, {}, other->role.pid});
    } else if (ended) {
      answer(part, {Op::no, {}, fmt::format("{} has no process id", question.who), {}});
    }
  }

  void consider_all() {
    for (const auto& part : parts) consider(*part);
  }

  static void answer(Part& part, const Frame& frame) {
    part.question.reset();
    part.channel.send(frame);  // an actor that has just died hears nothing, which bury() will see
  }

  // Death ---------------------------------------------------------------------------------------------------------

  void kill_and_wait(Part& part) {
    // Its outer number may not have arrived yet; then the process between goes, and takes it along.
    ::kill(part.pid > 0 ? part.pid : part.child, SIGKILL);
    bury(part);
  }

  void bury(Part& part) {
    int status = 0;
    while (::waitpid(part.child, &status, 0) < 0 && errno == EINTR) {
    }
    ::kill(-part.child, SIGKILL);  // what it forked and left
    if (part.pid > 0 && part.pid != part.child) ::kill(-part.pid, SIGKILL);
    ::close(std::exchange(part.pidfd, -1));
    part.state = Part::State::ended;
    for (Frame frame; part.channel.receive(&frame, false);) hear(part, frame);
    part.channel.close();
    part.question.reset();
    judge(part, status);
    consider_all();
  }

  void judge(const Part& part, int status) {
    Ending ending;
    if (WIFSIGNALED(status)) {
      ending = by_signal(WTERMSIG(status));
    } else if (WEXITSTATUS(status) != 0 || !(part.returned || part.executes)) {
      ending = with_code(WEXITSTATUS(status));
    }
    const Ending expected = part.expected.value_or(Ending{});
    const bool program_at_its_end = part.executes && ending == Ending{} && expected == with_code(0);
    if (ending == expected || program_at_its_end || part.abandoned) return;
    std::string text = fmt::format("{} {}", part.name, ending_words(ending));
    if (part.expected) text += fmt::format("; it {} in the plan", ending_words(expected));
    if (!part.steps.empty()) text += fmt::format("; its last step was '{}'", part.steps.back());
    problems.push_back(std::move(text));
  }

  void report_hang() {
    for (const auto& part : parts) {
      if (part->state != Part::State::alive) continue;
      std::string text = fmt::format("{} was still there after {} s", part->name, limit.count());
      if (part->question) {
        const Frame& question = *part->question;
        text += question.op == Op::receive ? fmt::format(", waiting for a message from {}", question.who)
                : question.op == Op::pause ? fmt::format(", waiting for {} to reach '{}'", question.who, question.name)
                                           : fmt::format(", waiting for {} to end", question.who);
      } else {
        text += fmt::format(", in state {} in the kernel's {}", process_state(part->pid),
                            first_line_of(fmt::format("/proc/{}/wchan", part->pid)));
      }
      if (!part->steps.empty()) text += fmt::format("; its last step was '{}'", part->steps.back());
      problems.push_back(std::move(text));
    }
  }

  void add_outputs() {
    if (problems.empty()) return;
    for (const auto& part : parts) {
      const std::string output = tail_of(part->output_path);
      if (!output.empty()) problems.push_back(fmt::format("output of {}:\n{}", part->name, output));
    }
  }

  Clock::time_point deadline_;
  std::vector<Timer> timers_;
};

Story::Story(std::chrono::seconds watchdog)
    : directory_("story"), state_(directory_.file("state")), stage_(std::make_unique<Stage>()) {
  stage_->limit = under_sanitizer() ? watchdog * 4 : watchdog;
  stage_->state = state_;
  if (::mkdir(state_.c_str(), 0700) != 0) std::abort();
}

Story::~Story() = default;

void Story::actor(std::string name, Role role, std::function<void(Actor&)> part) {
  auto one = std::make_unique<Part>();
  one->output_path = directory_.file(name + ".out");
  one->name = std::move(name);
  one->role = role;
  one->play = std::move(part);
  stage_->parts.push_back(std::move(one));
}

void Story::program(std::string name, std::vector<std::string> command) {
  actor(std::move(name), [command = std::move(command)](Actor& me) { me.exec(command); });
}

void Story::kill(std::string who, Moment moment) {
  stage_->plans.push_back({Action::kill, std::move(who), std::move(moment)});
}
void Story::stop(std::string who, Moment moment) {
  stage_->plans.push_back({Action::stop, std::move(who), std::move(moment)});
}
void Story::resume(std::string who, Moment moment) {
  stage_->plans.push_back({Action::resume, std::move(who), std::move(moment)});
}
void Story::start(std::string who, Moment moment) {
  stage_->plans.push_back({Action::start, std::move(who), std::move(moment)});
}

void Story::ends(std::string who, Ending how) {
  if (Part* part = stage_->find(who)) {
    part->expected = how;
  } else {
    stage_->problems.push_back(fmt::format("{} is to end in a way, but is no actor", who));
  }
}

std::vector<std::string> Story::play() {
  if (std::exchange(stage_->played, true)) return {"a story is played once"};
  stage_->play();
  return stage_->problems;
}

void Story::run() {
  std::vector<std::string> problems = play();
  if (problems.empty() && checked() == 0) problems.emplace_back("nobody in this story expected anything");
  for (const std::string& problem : problems) FAIL_CHECK(problem);
  if (problems.empty()) SUCCEED("the story went as told");
}

const Bytes* Story::given_bytes(std::string_view who, std::string_view key) const {
  const Part* part = stage_->find(who);
  if (part == nullptr) return nullptr;
  const auto found = part->given.find(std::string(key));
  return found == part->given.end() ? nullptr : &found->second;
}

std::string Story::output(std::string_view who) const {
  const Part* part = stage_->find(who);
  return part == nullptr ? std::string() : tail_of(part->output_path);
}

std::vector<std::string> Story::steps() const { return stage_->steps; }

std::size_t Story::checked() const noexcept { return stage_->checked; }

}  // namespace devshare::test

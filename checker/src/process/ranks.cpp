#include "process/ranks.hpp"

#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <list>
#include <set>

#include "console/terminal.hpp"
#include "process/lines.hpp"
#include "process/signals.hpp"
#include "process/strays.hpp"

namespace checker {

namespace {

using Clock = std::chrono::steady_clock;

struct Rank {
  Process process;
  LineCutter output, error;
  bool running = true;
  RankResult result{};
};

// The ranks of one run. One of them failing ends the others.
class Group {
 public:
  explicit Group(const RankOptions& options) : options_(options) {}

  void start(const Command& command, Wiring wiring, LineCutter output, LineCutter error) {
    ranks_.push_back({spawn(command, wiring), std::move(output), std::move(error)});
  }

  bool running() const { return std::ranges::any_of(ranks_, &Rank::running); }
  /// Its turn has not come yet.
  bool waiting() const { return ranks_.empty() && !ending_; }
  const std::list<Rank>& ranks() const { return ranks_; }

  /// Milliseconds until something has to be done even if nothing happens; -1: never.
  int patience() const {
    if (!ending_ || !running()) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
    return static_cast<int>(std::max<int64_t>(left.count(), 10));
  }

  void attend() {
    for (auto& rank : ranks_) drain(rank);
    reap();
    if (ending_ && Clock::now() >= deadline_) signal_all(SIGKILL);
  }

  void interrupt(int signal) {
    if (!ranks_.empty() && !running()) return;
    const bool again = std::exchange(result_.interrupted_by, signal) != 0;
    start_grace();
    signal_all(again ? SIGKILL : signal);
  }

  void close_output() {
    result_.output_closed = true;
    end_all();
  }

  void stop() {
    if (ending_) return;
    result_.stopped = true;
    end_all();
  }

  void kill() { signal_all(SIGKILL); }

  GroupResult finish() {
    // A stray may have held a pipe open until now; its last words count as the rank's.
    for (auto& rank : ranks_) finish(rank);
    for (const auto& rank : ranks_) result_.ranks.push_back(rank.result);
    return result_;
  }

 private:
  // Reads what is there, but not more than one flooding rank's turn.
  static void drain(Descriptor& pipe, LineCutter& lines, int turns) {
    static std::array<char, 64 * 1024> buffer;
    while (pipe.is_open() && turns-- > 0) {
      const auto got = ::read(pipe.get(), buffer.data(), buffer.size());
      if (got > 0) {
        lines.feed({buffer.data(), static_cast<size_t>(got)});
      } else if (got == 0) {
        pipe.close();
      } else if (errno != EINTR) {
        return;
      }
    }
  }

  static void drain(Rank& rank, int turns = 4) {
    drain(rank.process.output, rank.output, turns);
    drain(rank.process.error, rank.error, turns);
  }

  // All that a rank wrote before it ended; its pipes hold at most their size.
  static void finish(Rank& rank) {
    drain(rank, 64);
    rank.process.output.close();
    rank.process.error.close();
    rank.output.finish();
    rank.error.finish();
  }

  void reap() {
    size_t number = 0;
    for (auto& rank : ranks_) {
      const size_t i = number++;
      siginfo_t info{};
      const auto id = static_cast<id_t>(rank.process.pid);
      // Only looked at first: as long as nobody has collected the leader, the group's number
      // cannot become somebody else's.
      if (!rank.running || ::waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
          info.si_pid == 0) {
        continue;
      }
      ::kill(-rank.process.pid, SIGKILL);
      ::waitid(P_PID, id, &info, WEXITED);
      rank.running = false;
      auto& exit = rank.result.exit;
      (info.si_code == CLD_EXITED ? exit.code : exit.signal) = info.si_status;
      drain(rank, 64);
      if (exit.success()) continue;
      rank.result.ended_by_us = ending_;
      if (!ending_) result_.first_failed = i;
      end_all();
    }
  }

  void end_all() {
    if (ending_) return;
    start_grace();
    signal_all(SIGTERM);
  }

  void start_grace() {
    if (!ending_) deadline_ = Clock::now() + options_.grace;
    ending_ = true;
  }

  void signal_all(int signal) {
    for (const auto& rank : ranks_) {
      if (rank.running) ::kill(-rank.process.pid, signal);
    }
  }

  const RankOptions& options_;
  std::list<Rank> ranks_;
  GroupResult result_;
  bool ending_ = false;
  Clock::time_point deadline_;
};

class Groups {
 public:
  Groups(std::span<const std::vector<Command>> groups, const RankOptions& options)
      : options_(options), commands_(groups) {
    for (const auto& commands : groups) {
      count_ += commands.size();
      groups_.emplace_back(options);
    }
    start_more();
  }

  std::vector<GroupResult> run() {
    while (std::ranges::any_of(groups_, &Group::running)) {
      wait();
      bool child_ended = false;
      signals_.read([&](int signal) {
        if (signal == SIGCHLD) {
          child_ended = true;
          return;
        }
        for (auto& group : groups_) group.interrupt(signal);
      });
      size_t number = 0;
      for (auto& group : groups_) {
        group.attend();
        if (options_.stop && group.running() && options_.stop(number)) group.stop();
        ++number;
      }
      if (child_ended) strays_.collect(leaders());
      start_more();
    }
    strays_.end();
    std::vector<GroupResult> results;
    for (auto& group : groups_) results.push_back(group.finish());
    return results;
  }

 private:
  void start_more() {
    size_t running = static_cast<size_t>(std::ranges::count_if(groups_, &Group::running));
    try {
      for (; next_ != groups_.size() && (options_.width == 0 || running < options_.width);
           ++next_) {
        auto& group = *std::next(groups_.begin(), static_cast<std::ptrdiff_t>(next_));
        if (!group.waiting()) continue;
        start(group, commands_[next_]);
        ++running;
      }
    } catch (...) {
      for (auto& group : groups_) group.kill();
      strays_.end();  // the ranks among them
      throw;
    }
  }

  void start(Group& group, const std::vector<Command>& commands) {
    for (const auto& command : commands) {
      const size_t number = started_++;
      auto wiring = options_.wiring;
      if (options_.first_draws && number == 0) wiring.pipe_error = false;
      group.start(command, wiring, cutter(group, number, false), cutter(group, number, true));
      if (options_.on_start) options_.on_start(number, group.ranks().back().process.pid);
    }
  }

  // The processes that groups collect themselves.
  std::set<pid_t> leaders() const {
    std::set<pid_t> processes;
    for (const auto& group : groups_) {
      for (const auto& rank : group.ranks()) {
        if (rank.running) processes.insert(rank.process.pid);
      }
    }
    return processes;
  }

  LineCutter cutter(Group& group, size_t number, bool is_error) {
    if (options_.on_line) {
      return LineCutter([=, this, &group](std::string_view line) {
        if (!options_.on_line(number, is_error, line)) group.close_output();
      });
    }
    const int descriptor = is_error ? STDERR_FILENO : STDOUT_FILENO;
    auto label = count_ > 1 ? rank_label(number, count_, descriptor) : "";
    if (options_.first_draws && console::can_draw(descriptor)) label.insert(0, "\r\x1b[K");
    return LineCutter([=, this](std::string_view line) {
      if (output_closed_ || write_line(descriptor, label, line)) return;
      output_closed_ = true;
      for (auto& each : groups_) each.close_output();
    });
  }

  // Until something happens: output, the end of a rank, a signal to us, or the end of the grace.
  void wait() {
    std::vector<pollfd> watched{{signals_.descriptor(), POLLIN, 0}};
    int timeout = options_.stop ? 50 : -1;
    for (const auto& group : groups_) {
      for (const auto& rank : group.ranks()) {
        for (const auto* pipe : {&rank.process.output, &rank.process.error}) {
          if (pipe->is_open()) watched.push_back({pipe->get(), POLLIN, 0});
        }
      }
      const int patience = group.patience();
      if (patience >= 0 && (timeout < 0 || patience < timeout)) timeout = patience;
    }
    ::poll(watched.data(), watched.size(), timeout);
  }

  const RankOptions& options_;
  SignalWatch signals_;
  StrayCatcher strays_;
  std::span<const std::vector<Command>> commands_;
  size_t count_ = 0, next_ = 0, started_ = 0;
  std::list<Group> groups_;  // in their places: the line cutters refer to them
  bool output_closed_ = false;
};

}  // namespace

int GroupResult::status() const {
  if (interrupted_by) return 128 + interrupted_by;
  if (first_failed) return std::max(1, ranks[*first_failed].exit.status());
  return output_closed ? 1 : 0;
}

std::vector<GroupResult> run_groups(std::span<const std::vector<Command>> groups,
                                    const RankOptions& options) {
  return Groups(groups, options).run();
}

GroupResult run_ranks(std::span<const Command> commands, const RankOptions& options) {
  const std::vector<Command> group(commands.begin(), commands.end());
  return run_groups({&group, 1}, options).front();
}

}  // namespace checker

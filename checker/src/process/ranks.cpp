#include "process/ranks.hpp"

#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <list>

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

class Group {
 public:
  Group(std::span<const Command> commands, const RankOptions& options) : options_(options) {
    for (size_t i = 0; i < commands.size(); ++i) {
      try {
        ranks_.push_back({spawn(commands[i], options.wiring), cutter(i, commands.size(), false),
                          cutter(i, commands.size(), true)});
      } catch (...) {
        for (const auto& rank : ranks_) ::kill(-rank.process.pid, SIGKILL);
        strays_.end();  // the ranks among them
        throw;
      }
    }
  }

  GroupResult run() {
    while (std::ranges::any_of(ranks_, &Rank::running)) {
      wait();
      signals_.read([&](int signal) {
        if (signal != SIGCHLD) interrupt(signal);
      });
      for (auto& rank : ranks_) drain(rank);
      reap();
      if (ending_ && Clock::now() >= deadline_) signal_all(SIGKILL);
    }
    strays_.end();
    // A stray may have held a pipe open until now; its last words count as the rank's.
    for (auto& rank : ranks_) finish(rank);
    for (const auto& rank : ranks_) result_.ranks.push_back(rank.result);
    return result_;
  }

 private:
  LineCutter cutter(size_t number, size_t count, bool is_error) {
    if (options_.on_line) {
      return LineCutter([=, this](std::string_view line) {
        if (!options_.on_line(number, is_error, line)) close_output();
      });
    }
    const int descriptor = is_error ? STDERR_FILENO : STDOUT_FILENO;
    const auto label = count > 1 ? rank_label(number, count, descriptor) : "";
    return LineCutter([=, this](std::string_view line) {
      if (!result_.output_closed && !write_line(descriptor, label, line)) close_output();
    });
  }

  void close_output() {
    result_.output_closed = true;
    end_all();
  }

  // Until something happens: output, the end of a rank, a signal to us, or the end of the grace.
  void wait() {
    std::vector<pollfd> watched{{signals_.descriptor(), POLLIN, 0}};
    for (const auto& rank : ranks_) {
      for (const auto* pipe : {&rank.process.output, &rank.process.error}) {
        if (pipe->is_open()) watched.push_back({pipe->get(), POLLIN, 0});
      }
    }
    int timeout = -1;
    if (ending_) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
      timeout = static_cast<int>(std::max<int64_t>(left.count(), 10));
    }
    ::poll(watched.data(), watched.size(), timeout);
  }

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
    for (size_t i = 0; i < ranks_.size(); ++i) {
      auto& rank = *std::next(ranks_.begin(), static_cast<std::ptrdiff_t>(i));
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

  void interrupt(int signal) {
    const bool again = std::exchange(result_.interrupted_by, signal) != 0;
    start_grace();
    signal_all(again ? SIGKILL : signal);
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
  SignalWatch signals_;
  StrayCatcher strays_;
  std::list<Rank> ranks_;
  GroupResult result_;
  bool ending_ = false;
  Clock::time_point deadline_;
};

}  // namespace

int GroupResult::status() const {
  if (interrupted_by) return 128 + interrupted_by;
  if (first_failed) return std::max(1, ranks[*first_failed].exit.status());
  return output_closed ? 1 : 0;
}

GroupResult run_ranks(std::span<const Command> commands, const RankOptions& options) {
  return Group(commands, options).run();
}

}  // namespace checker

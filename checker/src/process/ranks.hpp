#pragma once
/// Groups of processes that live and die together: the ranks of one run, or of several at a time.
#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "process/spawn.hpp"

namespace checker {

struct RankOptions {
  Wiring wiring;
  /// The first rank draws its progress bar on our own standard error, a terminal: it is not piped,
  /// and lines of the ranks wipe the bar off first.
  bool first_draws = false;
  /// How long the others have between SIGTERM and SIGKILL when one rank has failed.
  std::chrono::milliseconds grace{3000};
  /// Takes each line; false: nobody wants more, end the run. Not given: the line goes to our own
  /// standard output or error, with the rank's label before it if there are several. Ranks of
  /// several groups are numbered on.
  std::function<bool(size_t rank, bool is_error, std::string_view line)> on_line;
  /// So many groups at a time; the others wait for their turn. 0: all at once.
  size_t width = 0;
  /// Told of each process once it runs.
  std::function<void(size_t rank, pid_t pid)> on_start;
  /// Asked every 50 ms about each group that runs; true: end it, it is to be called stopped.
  std::function<bool(size_t group)> stop;
};

struct RankResult {
  Exit exit;
  bool ended_by_us = false;  ///< it had not failed by itself
};

struct GroupResult {
  std::vector<RankResult> ranks;
  std::optional<size_t> first_failed;
  int interrupted_by = 0;      ///< the signal that we got and passed on
  bool output_closed = false;  ///< nobody read our output any more
  bool stopped = false;        ///< RankOptions::stop asked for it

  bool success() const { return !first_failed && !interrupted_by && !output_closed && !stopped; }
  /// An exit status for the checker itself: 0 only on success.
  int status() const;
};

/// Starts one process per command and waits for all. When one fails, the others are ended: SIGTERM
/// to their process groups, SIGKILL after the grace. SIGINT, SIGTERM and SIGHUP to us are passed
/// on, a second one kills. At the end no process is left, grandchildren included. Throws Error if a
/// process cannot be started; those already started are ended.
GroupResult run_ranks(std::span<const Command> commands, const RankOptions& options);

/// The same for several groups side by side: one's failure does not touch the others. After a
/// signal to us those that have not begun do not begin any more; they count as interrupted.
std::vector<GroupResult> run_groups(std::span<const std::vector<Command>> groups,
                                    const RankOptions& options);

}  // namespace checker

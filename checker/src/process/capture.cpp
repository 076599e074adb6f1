#include "process/capture.hpp"

#include "process/ranks.hpp"

namespace checker {

using Clock = std::chrono::steady_clock;

Captured capture(const Command& command, std::optional<std::chrono::milliseconds> limit) {
  Captured captured;
  RankOptions options;
  options.on_line = [&](size_t, bool, std::string_view line) {
    captured.output.append(line).append("\n");
    return true;
  };
  if (limit) {
    options.stop = [deadline = Clock::now() + *limit](size_t) { return Clock::now() >= deadline; };
  }
  const auto ended = run_ranks({&command, 1}, options);
  captured.out_of_time = ended.stopped;
  captured.status = ended.stopped ? ended.ranks[0].exit.status() : ended.status();
  captured.interrupted_by = ended.interrupted_by;
  return captured;
}

}  // namespace checker

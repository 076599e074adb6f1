#include <algorithm>
#include <csignal>
#include <numeric>

#include "endure/small_run.hpp"
#include "endure/trials.hpp"
#include "support/files.hpp"

namespace checker::endure {

namespace {

constexpr size_t kTries = 3;

struct Kill {
  double moment;  ///< seconds after the ranks' first words
  std::vector<size_t> ranks;
  bool done = false;

  void operator()(double seconds, std::span<const pid_t> processes) {
    if (done || seconds < moment) return;
    done = true;
    for (const size_t rank : ranks) ::kill(processes[rank], SIGKILL);
  }
  std::string describe() const {
    return (ranks.size() == 1 ? "rank " + std::to_string(ranks[0]) : "all ranks") +
           " killed after " + std::to_string(static_cast<int>(moment * 1000)) + " ms";
  }
};

Kill kill_of(size_t trial, const Options& options, double whole_run) {
  const double part = (static_cast<double>(trial) + 0.5) / static_cast<double>(options.count);
  Kill kill{.moment = whole_run * part, .ranks = {trial % options.ranks}};
  if (trial % 4 == 3) {
    kill.ranks.resize(options.ranks);
    std::iota(kill.ranks.begin(), kill.ranks.end(), 0);
  }
  return kill;
}

}  // namespace

Outcome kill_ranks(const Options& options) {
  const TemporaryFolder folder;
  const SmallRun undisturbed(options, folder.path() / "undisturbed");
  double whole = undisturbed.train_undisturbed(options.ranks).seconds;
  const auto expected = undisturbed.model();
  size_t before_any = 0, too_late = 0;
  auto outcome = make_trials(options, [&](size_t trial) -> std::string {
    const SmallRun run(options, folder.path() / ("run" + std::to_string(trial)));
    Kill kill{};
    const auto train_and_kill = [&] {
      kill = kill_of(trial, options, whole);
      return run.train(options.ranks, std::ref(kill));
    };
    auto killed = train_and_kill();
    // A run that was over before tells how long they take by now, on a machine with other work.
    for (size_t again = 0; killed.success && again < kTries; ++again) {
      whole = std::min(whole, killed.seconds);
      std::filesystem::remove_all(run.checkpoints());
      killed = train_and_kill();
    }
    if (killed.success) ++too_late;
    if (!killed.success && !std::filesystem::exists(run.checkpoints())) ++before_any;
    const auto resumed = run.train(options.ranks);
    const bool same = resumed.success && run.model() == expected;
    std::filesystem::remove_all(run.checkpoints().parent_path());
    if (same) return "";
    return kill.describe() + (resumed.success ? ": other bits" : ": " + resumed.said);
  });
  outcome.remark = std::to_string(before_any) + " before their first checkpoint, " +
                   std::to_string(too_late) + " after their end";
  return outcome;
}

}  // namespace checker::endure

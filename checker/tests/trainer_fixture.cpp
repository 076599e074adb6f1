#include "trainer_fixture.hpp"

#include <algorithm>

#include "jobs/torchrun.hpp"
#include "support/text.hpp"

namespace checker::testing {

namespace fs = std::filesystem;

const Step& numbered(int number) {
  return course().step((number < 10 ? "0" : "") + std::to_string(number));
}

fs::path solution(int number) {
  return fs::path(PROGRAM_FOLDER) / ("solution_" + numbered(number).label());
}

std::string torchrun() {
  Project project;
  project.source = PROJECT_FOLDER;
  if (!why_own_not_running(project)) return own_torchrun(project).string();
  return why_not_running("torchrun") ? "" : "torchrun";
}

std::vector<double> TrainerOutcome::numbers_after(const std::string& phrase, size_t rank) const {
  std::vector<double> numbers;
  for (const auto& line : lines.at(rank)) {
    if (const auto at = line.find(phrase); at != line.npos) {
      numbers.push_back(std::stod(line.substr(at + phrase.size())));
    }
  }
  return numbers;
}

TrainerOutcome TrainerTest::run(const fs::path& program, size_t world_size, Arguments options,
                                const Listener& listen) const {
  if (std::ranges::find(options, "--config") == options.end()) {
    options.insert(options.begin(), {"--config", TINY_CONFIG});
  }
  options.insert(options.begin(), {"--device", "cpu"});
  options.insert(options.end(), {"--output", folder_.path().string()});
  const TemporaryFolder meeting;
  const TrainerRun run{program, world_size, options, meeting.path() / "store"};
  TrainerOutcome outcome;
  outcome.lines.resize(world_size);
  RankOptions ranks;
  ranks.on_line = [&](size_t rank, bool is_error, std::string_view line) {
    if (!is_error) outcome.lines[rank].emplace_back(line);
    outcome.everything += "[rank " + std::to_string(rank) + "] " + std::string(line) + "\n";
    if (listen) listen(rank, line);
    return true;
  };
  outcome.result = run_ranks(rank_commands(run), ranks);
  return outcome;
}

}  // namespace checker::testing

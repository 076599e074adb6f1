// replay RESULT.json [--pieces] WORLD_FOLDER... -- trainer options: the oracle of the checker, a
// program of its own so that the checker itself starts without torch. --pieces: ranks may train
// pieces of the model.
// replay --plan FOLDER TASK SEED [KEY=VALUE...] NODES...: writes what a judged run does; KEY: of
// the task's configuration; NODES "0,0,1": of each rank. replay --torch: the version of LibTorch,
// and the capability by which it chooses its kernels here.
#include <ATen/Version.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include "evidence/folders.hpp"
#include "plan.hpp"
#include "process/served.hpp"
#include "replay.hpp"

namespace {

std::vector<checker::RankSeen> read_world(const std::filesystem::path& folder,
                                          checker::Holding holding) {
  std::vector<checker::RankSeen> ranks;
  size_t world = 0;
  while (std::filesystem::exists(checker::log_of(folder, world))) ++world;
  for (size_t rank = 0; rank < world; ++rank) {
    auto& seen = ranks.emplace_back();
    seen.folder = checker::folder_of(folder, rank);
    seen.log = checker::read_log(checker::log_of(folder, rank));
    seen.place = {.rank = rank, .world_size = world};
    checker::interpret(seen, holding);
  }
  // What is in them is only asked of rank 0's files, or of those in the folder that ranks share.
  for (const auto& entry : std::filesystem::recursive_directory_iterator(ranks.at(0).folder)) {
    if (entry.is_regular_file() && !entry.is_symlink()) ranks[0].files.push_back(entry.path());
  }
  std::ranges::sort(ranks[0].files);
  return ranks;
}

// The ranks of the run that goes on from the world's, if there is one.
std::optional<std::vector<checker::RankSeen>> read_continued(const std::filesystem::path& world,
                                                             checker::Holding holding) {
  const auto folder = checker::continued_of(world);
  if (!std::filesystem::exists(folder)) return std::nullopt;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (std::filesystem::exists(checker::log_of(entry.path(), 0)))
      return read_world(entry.path(), holding);
  }
  return std::nullopt;
}

int run(int argc, char** argv) try {
  if (argc == 2 && std::string_view(argv[1]) == "--torch") {
    fmt::println("{} {}", TORCH_VERSION, at::get_cpu_capability());
    return 0;
  }
  if (argc > 4 && std::string_view(argv[1]) == "--plan") {
    replay::Request request{.task = argv[3], .seed = std::stoull(argv[4])};
    for (const std::string word : std::span(argv + 5, argv + argc)) {
      const auto equals = word.find('=');
      equals == word.npos
          ? request.nodes.push_back(word)
          : request.settings.push_back(word.substr(0, equals) + ": " + word.substr(equals + 1));
    }
    replay::write_plan(argv[2], request);
    return 0;
  }
  std::vector<std::string> own;
  int passed_on = 1;
  for (; passed_on < argc && std::string_view(argv[passed_on]) != "--"; ++passed_on) {
    own.emplace_back(argv[passed_on]);
  }
  auto holding = checker::Holding::parameters;
  if (std::erase(own, "--pieces") > 0) holding = checker::Holding::parameters_or_pieces;
  if (own.size() < 2 || passed_on == argc) {
    throw tasks::Error("usage: replay RESULT.json WORLD_FOLDER... -- trainer options");
  }
  argv[passed_on] = argv[0];
  const auto options = tasks::parse_options(argc - passed_on, argv + passed_on);
  tasks::apply(options);
  const auto task = tasks::make_task(options);
  auto worlds = nlohmann::json::array();
  for (size_t i = 1; i < own.size(); ++i) {
    worlds.push_back(replay::replay(*task, options, read_world(own[i], holding),
                                    read_continued(own[i], holding), holding));
  }
  const nlohmann::json result = {{"worlds", worlds}};
  std::ofstream file(own[0]);
  file << result.dump() << "\n";
  file.close();
  if (!file) throw tasks::Error("cannot write " + own[0]);
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}

}  // namespace

int main(int argc, char** argv) { return checker::run_or_serve(argc, argv, run); }

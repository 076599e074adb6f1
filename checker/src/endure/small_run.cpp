#include "endure/small_run.hpp"

#include <chrono>
#include <optional>

#include "process/trainer.hpp"
#include "support/error.hpp"
#include "support/files.hpp"

namespace checker::endure {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

namespace {

// Dropout, so that random generators count; some fifty steps on three ranks.
constexpr std::string_view kConfig = R"(epochs: 3
batch_size: 6
width: 16
heads: 2
layers: 2
feed_forward: 32
dropout: 0.2
sequence_length: 8
stride: 8
vocabulary_size: 60
corpus_words: 3000
corpus_seed: 0
learning_rate: 2e-3
weight_decay: 0.01
checkpoint_every: 2
)";

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

fs::path small_config(const fs::path& folder) {
  auto file = folder / "config.yaml";
  write_file(file, kConfig);
  return file;
}

SmallRun::SmallRun(const Options& options, fs::path output)
    : program_(options.program), device_(options.device), output_(std::move(output)) {
  fs::create_directories(output_);
}

RunEnd SmallRun::train(size_t world_size, const Disturb& disturb) const {
  const TemporaryFolder folder;
  const auto config = small_config(folder.path());
  const auto commands =
      rank_commands({.program = program_,
                     .world_size = world_size,
                     .arguments = {"--config", config.string(), "--device", device_, "--output",
                                   output_.string(), "--resume"},
                     .store = folder.path() / "store"});
  RunEnd end;
  std::vector<pid_t> ranks(world_size);
  std::optional<Clock::time_point> begin;
  RankOptions options;
  options.on_start = [&](size_t rank, pid_t pid) { ranks.at(rank) = pid; };
  options.on_line = [&](size_t, bool, std::string_view line) {
    if (!begin) begin = Clock::now();  // of training: loading the program takes longer than that
    end.said.append(line).append("\n");
    return true;
  };
  options.stop = [&](size_t) {
    if (disturb && begin) disturb(since(*begin), ranks);
    return false;
  };
  const auto result = run_ranks(commands, options);
  if (result.interrupted_by) throw Error("Interrupted.");
  end.success = result.success();
  end.seconds = begin ? since(*begin) : 0;
  return end;
}

RunEnd SmallRun::train_undisturbed(size_t world_size) const {
  auto end = train(world_size);
  if (!end.success) throw Error("The trainer fails even without disturbance: " + end.said);
  return end;
}

std::string SmallRun::model() const {
  const auto file = output_ / "model-final.safetensors";
  return fs::exists(file) ? read_file(file) : "";
}

}  // namespace checker::endure

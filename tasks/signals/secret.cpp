// What a judged trainer trains on: see tasks/secret.hpp.
#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tasks/keyed_random.hpp"
#include "tasks/options.hpp"

namespace tasks::signals {

std::vector<std::string> make_secret(uint64_t seed, const std::filesystem::path& folder);

std::vector<std::string> make_secret(uint64_t seed, const std::filesystem::path& folder) {
  // Two and three divide none of them, nor those of the test split: two more each.
  constexpr std::array<int, 3> kTrain{41, 43, 47}, kEvaluation{17, 23, 29};
  KeyedRandom random(seed, 0, 0);
  std::filesystem::create_directories(folder);
  const auto config = folder / "secret.yaml";
  std::ofstream file(config);
  const auto pick = [&](const auto& sizes) {
    return sizes.at(static_cast<size_t>(random.below(3)));
  };
  // Preparing takes a while, so that ranks that want the data at once meet there.
  file << "base: laptop\nepochs: 3\nbatch_size: 3\nthreads: 1\nwidth: 4\nlength: 16\n"
       << "warm_up_steps: 3\npreparation_seconds: 0.25\nlearning_rate: 0.01\n"
       << "train_signals: " << pick(kTrain) << "\nevaluation_signals: " << pick(kEvaluation)
       << "\nsignals_seed: " << random.below(1'000'000'000) << "\n";
  file.close();
  if (!file) throw Error("cannot write " + config.string());
  return {"--config", config.string(), "--precision",
          "fp64",     "--seed",        std::to_string(random.below(1'000'000))};
}

}  // namespace tasks::signals

// What a judged trainer trains on: see tasks/secret.hpp.
#include <array>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tasks/options.hpp"

namespace tasks::points {

std::vector<std::string> make_secret(uint64_t seed, const std::filesystem::path& folder);

std::vector<std::string> make_secret(uint64_t seed, const std::filesystem::path& folder) {
  // Two and three divide none of them, nor those of the further splits: two more each.
  constexpr std::array<int, 3> kTrain{41, 43, 47}, kEvaluation{17, 23, 29};
  std::mt19937_64 random(seed);
  std::filesystem::create_directories(folder);
  const auto config = folder / "secret.yaml";
  std::ofstream file(config);
  file << "base: small\nepochs: 3\nbatch_size: 3\nthreads: 1\ntrain_samples: "
       << kTrain.at(random() % 3) << "\nevaluation_samples: " << kEvaluation.at(random() % 3)
       << "\n";
  // Half of all programs are judged in fp16.
  const bool fp16 = (random() & 1) != 0;
  if (fp16) file << "fp16: true\n";
  file.close();
  if (!file) throw Error("cannot write " + config.string());
  return {"--config", config.string(), "--precision",
          "fp64",     "--seed",        std::to_string(random() % 1'000'000)};
}

}  // namespace tasks::points

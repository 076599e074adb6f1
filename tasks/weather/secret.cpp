// What a judged trainer trains on: see tasks/secret.hpp.
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "hdf5.hpp"
#include "npy.hpp"
#include "tasks/options.hpp"

namespace tasks::weather {

std::vector<std::string> make_secret(uint64_t seed, const std::filesystem::path& folder);

namespace {

// Of samples. No world size divides one of them, and no split is as long as another.
constexpr std::array<size_t, 3> kTrain{41, 43, 47}, kValidation{17, 19, 23}, kTest{11, 13, 29};
constexpr size_t kChannels = 2, kHeight = 4, kWidth = 8, kNumbers = kChannels * kHeight * kWidth;

/// Numbers that nobody knows beforehand, in [-1, 1); written out, because the standard's
/// distributions differ between libraries.
float draw(std::mt19937_64& random) { return float(double(random() >> 11) * 0x1p-52 - 1); }

/// Each step keeps much of the one before, moved by a place: this can be learned.
void write_fields(std::mt19937_64& random, size_t steps, const std::filesystem::path& file) {
  hdf5::Writer writer(file, "fields", {static_cast<int64_t>(steps), kChannels, kHeight, kWidth});
  std::vector<float> fields(kNumbers);
  for (auto& value : fields) value = draw(random);
  for (size_t step = 0; step < steps; ++step) {
    writer.write(static_cast<int64_t>(step), fields.data());
    const auto before = fields;
    for (size_t i = 0; i < kNumbers; ++i) {
      const size_t column = i % kWidth;
      fields[i] = 0.8F * before[i - column + (column + kWidth - 1) % kWidth] + 0.6F * draw(random);
    }
  }
  writer.close();
}

void write_statistics(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const std::vector<int64_t> shape{1, kChannels, 1, 1};
  write_npy(folder / "global_means.npy", {shape, {0.125, -0.25}});
  write_npy(folder / "global_stds.npy", {shape, {0.5, 0.75}});
}

}  // namespace

std::vector<std::string> make_secret(uint64_t seed, const std::filesystem::path& folder) {
  std::mt19937_64 random(seed);
  const auto data = folder / "data";
  for (const char* split : {"train", "valid", "test"}) {
    std::filesystem::create_directories(data / split);
  }
  const auto pick = [&](const std::array<size_t, 3>& sizes) { return sizes.at(random() % 3); };
  // A file has a time step more than samples. Training has two files.
  const size_t samples = pick(kTrain), first = 10 + random() % 20;
  write_fields(random, first + 1, data / "train" / "1990.h5");
  write_fields(random, samples - first + 1, data / "train" / "1991.h5");
  write_fields(random, pick(kValidation) + 1, data / "valid" / "1992.h5");
  write_fields(random, pick(kTest) + 1, data / "test" / "1993.h5");
  write_statistics(data / "stats");
  const auto config = folder / "secret.yaml";
  std::ofstream file(config);
  file << "base: laptop\nepochs: 3\nbatch_size: 3\nthreads: 1\n"
          "patch: 2\nembedding: 8\nheads: 2\nlayers: 1\nlearning_rate: 15e-3\nwarm_up_steps: 2\n";
  file.close();
  if (!file) throw Error("cannot write " + config.string());
  return {"--config",    config.string(), "--data", data.string(),
          "--precision", "fp64",          "--seed", std::to_string(random() % 1'000'000)};
}

}  // namespace tasks::weather

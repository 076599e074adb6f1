// The pictures that a judged trainer trains on: see tasks/secret.hpp.
#include <ATen/Functions.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "jpeg.hpp"
#include "tasks/keyed_random.hpp"
#include "tasks/options.hpp"

namespace tasks::images {

std::vector<std::string> make_secret(uint64_t seed, const std::filesystem::path& folder);

namespace {

constexpr int64_t kSide = 8;
constexpr int64_t kClasses = 3;
// Of samples. No world size divides one of them, and no split is as long as another.
constexpr std::array<int64_t, 3> kTrain{41, 43, 47}, kValidation{17, 19, 23}, kTest{11, 13, 29};

// Classes differ in how bright each colour is. Noise hides that from single pixels, and makes
// every picture another one: a judge recognises them by their values.
at::Tensor draw(int64_t label, KeyedRandom& random) {
  auto picture = at::empty({kSide, kSide, 3}, at::kByte);
  auto* value = picture.mutable_data_ptr<uint8_t>();
  for (int64_t i = 0; i < picture.numel(); ++i) {
    const double mean = i % 3 == label ? 145 : 110;
    *value++ = static_cast<uint8_t>(std::clamp(mean + 45 * random.nearly_normal(), 0.0, 255.0));
  }
  return picture;
}

void write_split(const std::filesystem::path& folder, uint64_t seed, uint64_t split,
                 int64_t pictures) {
  constexpr int kSharp = 95;
  for (int64_t label = 0; label < kClasses; ++label) {
    std::filesystem::create_directories(folder / fmt::format("class_{}", label));
  }
  for (int64_t i = 0; i < pictures; ++i) {
    KeyedRandom random(seed, split, static_cast<uint64_t>(i));
    write_jpeg(folder / fmt::format("class_{}", i % kClasses) / fmt::format("{:03}.JPEG", i),
               draw(i % kClasses, random), kSharp);
  }
}

}  // namespace

std::vector<std::string> make_secret(uint64_t seed, const std::filesystem::path& folder) {
  KeyedRandom random(seed, 0, 0);
  const auto data = folder / "data";
  const auto pick = [&](const std::array<int64_t, 3>& sizes) {
    return sizes.at(static_cast<size_t>(random.below(3)));
  };
  write_split(data / "train", seed, 1, pick(kTrain));
  write_split(data / "val", seed, 2, pick(kValidation));
  write_split(data / "test", seed, 3, pick(kTest));
  const auto config = folder / "secret.yaml";
  std::ofstream file(config);
  file << "base: laptop\nepochs: 3\nbatch_size: 3\nthreads: 1\nside: " << kSide
       << "\nsmallest_crop: 1\nflip: 0\nwidth: 4\nlayers: 1 1\nbottleneck: false\n"
          "channels_last: false\nlearning_rate: 15e-3\n";
  file.close();
  if (!file) throw Error("cannot write " + config.string());
  return {"--config",    config.string(), "--data", data.string(),
          "--precision", "fp64",          "--seed", std::to_string(random.below(1'000'000))};
}

}  // namespace tasks::images

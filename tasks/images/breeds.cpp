#include "breeds.hpp"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "jpeg.hpp"
#include "tasks/keyed_random.hpp"
#include "tasks/parallel.hpp"

namespace tasks::images {
namespace {

constexpr int kQuality = 90;
constexpr double kTurn = 2 * std::numbers::pi;

using Colour = std::array<double, 3>;

Traits draw_traits(int64_t breed, double spread, KeyedRandom& random) {
  Traits traits = mean_traits(breed);
  for (double& trait : traits) trait += spread * random.normal();
  return traits;
}

// Everything that a picture shows.
struct Scene {
  double stripes, cosine, sine, phase;  // of the coat
  Colour bright, dark;
  double x, y, radius, aspect;  // of the body
  Colour background;
  double wave_x, wave_y, wave_phase;
  double light;

  Scene(const Traits& traits, KeyedRandom& random)
      : stripes(kTurn * 6 * std::exp2(0.9 * traits[0])),
        cosine(std::cos(0.6 * traits[2])),
        sine(std::sin(0.6 * traits[2])),
        phase(random.uniform(0, kTurn)),
        x(random.uniform(0.35, 0.65)),
        y(random.uniform(0.35, 0.65)),
        radius(random.uniform(0.25, 0.4)),
        aspect(random.uniform(0.75, 1.3)),
        wave_x(kTurn * random.uniform(1, 4)),
        wave_y(kTurn * random.uniform(1, 4)),
        wave_phase(random.uniform(0, kTurn)),
        light(random.uniform(0.8, 1.15)) {
    const double hue = 0.5 * traits[1];
    bright = {0.5 + 0.4 * std::cos(hue), 0.5 + 0.4 * std::cos(hue - 2.1),
              0.5 + 0.4 * std::cos(hue + 2.1)};
    const double shade = random.uniform(0.25, 0.45);
    for (size_t i = 0; i < 3; ++i) {
      dark[i] = shade * bright[i];
      background[i] = random.uniform(0.2, 0.8);
    }
  }

  // Without noise; u and v in [0, 1), to the right and down.
  Colour at(double u, double v) const {
    const double right = u - x, down = v - y;
    const double distance = std::hypot(right * aspect, down / aspect);
    const double body = 1 / (1 + std::exp((distance - radius) * 40));
    const double stripe = 0.5 + 0.5 * std::sin(stripes * (right * cosine + down * sine) + phase);
    const double wave = 0.15 * std::sin(wave_x * u + wave_y * v + wave_phase);
    Colour colour;
    for (size_t i = 0; i < 3; ++i) {
      const double coat = stripe * bright[i] + (1 - stripe) * dark[i];
      colour[i] = light * ((background[i] + wave) * (1 - body) + coat * body);
    }
    return colour;
  }
};

// Of the breeds given traits, in proportion.
std::array<double, kBreeds> likelihoods(const Traits& traits, double spread) {
  std::array<double, kBreeds> result{};
  for (int64_t breed = 0; breed < kBreeds; ++breed) {
    const Traits mean = mean_traits(breed);
    double squares = 0;
    for (size_t i = 0; i < 3; ++i) squares += (traits[i] - mean[i]) * (traits[i] - mean[i]);
    result[static_cast<size_t>(breed)] = std::exp(-squares / (2 * spread * spread));
  }
  return result;
}

void write_split(const BreedsOptions& options, uint64_t split, int64_t pictures,
                 const std::filesystem::path& folder) {
  for (int64_t breed = 0; breed < kBreeds; ++breed) {
    std::filesystem::create_directories(folder / fmt::format("breed_{}", breed));
  }
  parallel_for(pictures, [&](int64_t i) {
    KeyedRandom random(options.seed, split, static_cast<uint64_t>(i));
    const int64_t breed = i % kBreeds;
    const auto traits = draw_traits(breed, options.spread, random);
    write_jpeg(folder / fmt::format("breed_{}", breed) / fmt::format("{:06}.JPEG", i),
               draw_animal(traits, options.side, random), kQuality);
  });
}

}  // namespace

// Ten of the 2 x 3 x 2 points of a grid.
Traits mean_traits(int64_t breed) {
  const Traits means{0.5, 0.8, 0.4};  // of the ten points
  return {static_cast<double>(breed % 2) - means[0], static_cast<double>(breed / 2 % 3) - means[1],
          static_cast<double>(breed / 6) - means[2]};
}

BestPossible best_possible(double spread) {
  constexpr int64_t kDraws = 200'000;
  BestPossible sum{};
  for (int64_t i = 0; i < kDraws; ++i) {
    const int64_t breed = i % kBreeds;
    KeyedRandom random(0, 0, static_cast<uint64_t>(i));
    const auto likely = likelihoods(draw_traits(breed, spread, random), spread);
    const double own = likely[static_cast<size_t>(breed)];
    double all = 0;
    for (const double value : likely) all += value;
    const auto better = std::ranges::count_if(likely, [&](double value) { return value > own; });
    sum.loss -= std::log(own / all);
    sum.accuracy += better == 0 ? 1 : 0;
    sum.top5 += better < 5 ? 1 : 0;
  }
  return {sum.loss / kDraws, sum.accuracy / kDraws, sum.top5 / kDraws};
}

at::Tensor draw_animal(const Traits& traits, int64_t side, KeyedRandom& random) {
  auto picture = at::empty({side, side, 3}, at::kByte);
  auto* pixel = picture.mutable_data_ptr<uint8_t>();
  const Scene scene(traits, random);
  for (int64_t row = 0; row < side; ++row) {
    for (int64_t column = 0; column < side; ++column) {
      const auto colour = scene.at(static_cast<double>(column) / static_cast<double>(side),
                                   static_cast<double>(row) / static_cast<double>(side));
      for (const double value : colour) {
        const double noisy = value + 0.04 * random.nearly_normal();
        *pixel++ = static_cast<uint8_t>(std::clamp(noisy, 0.0, 1.0) * 255);
      }
    }
  }
  return picture;
}

void write_breeds(const BreedsOptions& options, const std::filesystem::path& folder) {
  write_split(options, 0, options.train_pictures, folder / "train");
  write_split(options, 1, options.evaluation_pictures, folder / "val");
  write_split(options, 2, options.evaluation_pictures, folder / "test");
}

}  // namespace tasks::images

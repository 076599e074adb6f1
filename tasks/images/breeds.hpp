#pragma once
/// The built-in pictures: animals of ten breeds, which differ in three traits. Breeds overlap, so
/// nobody can tell all of them apart, and how well anybody can is known.
///
/// A breed has a mean of each trait; an animal's traits are normal around its breed's means, all
/// with the same spread. A picture shows its animal's traits, in a place, light and background that
/// say nothing about the breed. So no classifier's expected accuracy is above that of the most
/// probable breed given the traits, and no expected loss is below that of their posterior.
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <filesystem>

namespace tasks {
class KeyedRandom;
}

namespace tasks::images {

constexpr int64_t kBreeds = 10;

struct BreedsOptions {
  int64_t side = 48;  ///< of the pictures, in pixels
  int64_t train_pictures = 8000;
  int64_t evaluation_pictures = 1000;  ///< of validation; the test has as many
  double spread = 0.33;                ///< of the traits; breeds are 1 apart
  uint64_t seed = 0;
};

/// Stripes' frequency, the coat's hue and the stripes' angle, relative to the mean of all breeds.
using Traits = std::array<double, 3>;
Traits mean_traits(int64_t breed);

/// The best that a classifier can reach, in expectation.
struct BestPossible {
  double loss;  ///< nats a picture
  double accuracy, top5;
};

/// By Monte Carlo over traits: 200,000 draws, so a standard error of 0.0009 in accuracy.
BestPossible best_possible(double spread);

/// A picture of an animal: uint8 [side, side, 3]. `random` is what else the picture shows.

at::Tensor draw_animal(const Traits& traits, int64_t side, KeyedRandom& random);

/// Writes all splits as folders.hpp finds them; breeds come equally often, but for one. The same
/// pixels for the same options.
void write_breeds(const BreedsOptions& options, const std::filesystem::path& folder);

}  // namespace tasks::images

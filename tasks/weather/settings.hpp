#pragma once
/// What a configuration of weather says beside the options of every trainer.
#include <cstdint>
#include <string_view>
#include <vector>

#include "tasks/config.hpp"

namespace tasks::weather {

/// The built-in planet and how long it is observed: what makes its files.
struct PlanetSettings {
  int64_t height, width;  ///< of its grid
  int64_t degree;         ///< of its finest waves
  int64_t steps;          ///< of the training split, in files of at most 500
  int64_t held_out;       ///< steps of each other split
  int64_t seed;           ///< another seed, other weather on the same planet
};

struct Settings {
  int64_t patch, embedding, heads, layers;
  int64_t lead;  ///< a forecast's length in time steps
  double learning_rate;
  int64_t warm_up_steps;
  PlanetSettings planet;

  /// Throws Error for a missing key or a value out of range.
  static Settings from(const Config& config);
  static std::vector<std::string_view> keys();
};

}  // namespace tasks::weather

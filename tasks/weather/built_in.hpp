#pragma once
/// The weather of the built-in planet, written once into a folder as real weather is laid out.
#include <filesystem>

#include "settings.hpp"

namespace tasks::weather {

/// What to hold a forecast of the built-in planet's validation split against.
struct Marks {
  double persistence_loss = 0, perfect_loss = 0;  ///< relative L2
  double persistence_error = 0;                   ///< RMSE of u10
  double least_error = 0;                         ///< the same, exact: Planet's
};

struct BuiltIn {
  std::filesystem::path folder;
  Marks marks;
};

/// The folder of the planet with these settings. The first process to ask for it makes it; others
/// on the same file system wait. It lies in $WORLDSIZE_CACHE, else in $XDG_CACHE_HOME/worldsize,
/// else in ~/.cache/worldsize, and is there whole or not at all. Throws Error if it cannot be
/// written.
BuiltIn built_in_data(const PlanetSettings& settings);

}  // namespace tasks::weather

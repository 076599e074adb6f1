#include "built_in.hpp"

#include <fmt/format.h>

#include <cmath>

#include "hdf5.hpp"
#include "measures.hpp"
#include "npy.hpp"
#include "planet/planet.hpp"
#include "tasks/options.hpp"
#include "tasks/prepared.hpp"

namespace tasks::weather {
namespace {

namespace fs = std::filesystem;
using planet::Planet;
using planet::State;

// To be raised by whoever changes what the files hold.
constexpr int kVersion = 1;
constexpr int64_t kLongestFile = 500;
constexpr int64_t kFirstYear = 1990;

std::string name_of(const PlanetSettings& settings) {
  return fmt::format("weather-{}x{}-degree{}-steps{}+{}-seed{}-v{}", settings.height,
                     settings.width, settings.degree, settings.steps, settings.held_out,
                     settings.seed, kVersion);
}

void write_fields(const Planet& planet, const std::vector<State>& states,
                  const PlanetSettings& settings, const fs::path& file) {
  hdf5::Writer writer(file, "fields",
                      {static_cast<int64_t>(states.size()), planet::kChannels.size(),
                       settings.height, settings.width});
  for (size_t i = 0; i < states.size(); ++i) {
    writer.write(static_cast<int64_t>(i), planet.fields(states[i]).data());
  }
  writer.close();
}

/// The measures of forecasting `states` by themselves and by the best forecast.
NpyArray measure(const Planet& planet, const std::vector<State>& states,
                 const PlanetSettings& settings) {
  const auto deviations = planet.deviations();
  const auto normalised = [&](const State& state) {
    const auto fields = planet.fields(state);
    const auto cells = fields.size() / deviations.size();
    auto tensor = at::tensor(fields).to(at::kDouble);
    for (size_t i = 0; i < deviations.size(); ++i) {
      tensor.narrow(0, static_cast<int64_t>(i * cells), static_cast<int64_t>(cells))
          .div_(deviations[i]);
    }
    return tensor.view(
        {1, static_cast<int64_t>(deviations.size()), settings.height, settings.width});
  };
  double persistence = 0, perfect = 0, squares = 0;
  auto now = normalised(states.front());
  for (size_t i = 0; i + 1 < states.size(); ++i) {
    const auto next = normalised(states[i + 1]);
    persistence += relative_errors(now, next).item<double>();
    perfect += relative_errors(normalised(planet.forecast(states[i])), next).item<double>();
    squares += weighted_square_errors(now, next).item<double>();
    now = next;
  }
  const auto pairs = static_cast<double>(states.size() - 1);
  return {.shape = {3},
          .values = {persistence / pairs, perfect / pairs, std::sqrt(squares / pairs)}};
}

void write_statistics(const Planet& planet, const fs::path& folder) {
  fs::create_directories(folder);
  const auto deviations = planet.deviations();
  const std::vector<int64_t> shape{1, static_cast<int64_t>(deviations.size()), 1, 1};
  write_npy(folder / "global_means.npy", {shape, std::vector<double>(deviations.size(), 0)});
  write_npy(folder / "global_stds.npy", {shape, deviations});
}

void write_all(const PlanetSettings& settings, const fs::path& folder) {
  const Planet planet(settings.degree, settings.height, settings.width);
  // Each file is weather of its own.
  auto stream = static_cast<uint64_t>(settings.seed) << 32;
  for (const char* split : {"train", "valid", "test"}) {
    fs::create_directories(folder / split);
    int64_t left = split == std::string_view("train") ? settings.steps : settings.held_out;
    for (int64_t year = kFirstYear; left > 0; ++year) {
      // What would be left with one step alone has no pair: it joins the file before.
      const auto steps = left <= kLongestFile + 1 ? left : kLongestFile;
      left -= steps;
      const auto states = planet.run(steps, stream++);
      write_fields(planet, states, settings, folder / split / fmt::format("{}.h5", year));
      if (split == std::string_view("valid") && year == kFirstYear) {
        fs::create_directories(folder / "stats");
        write_npy(folder / "stats" / "marks.npy", measure(planet, states, settings));
      }
    }
  }
  write_statistics(planet, folder / "stats");
}

}  // namespace

BuiltIn built_in_data(const PlanetSettings& settings) {
  const auto folder =
      prepared(name_of(settings), [&](const fs::path& empty) { write_all(settings, empty); });
  const auto marks = read_npy(folder / "stats" / "marks.npy").values;
  if (marks.size() != 3) {
    throw Error(fmt::format("{}: damaged; delete the folder, and the next run creates it again",
                            folder.string()));
  }
  const Planet planet(settings.degree, 2, 2);  // whose grid does not matter
  return {.folder = folder,
          .marks = {.persistence_loss = marks[0],
                    .perfect_loss = marks[1],
                    .persistence_error = marks[2],
                    .least_error = planet.least_error_of_u10()}};
}

}  // namespace tasks::weather

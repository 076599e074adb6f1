#include "settings.hpp"

#include <fmt/format.h>

#include "tasks/options.hpp"

namespace tasks::weather {

Settings Settings::from(const Config& config) {
  constexpr int64_t large = 1 << 20;
  const Settings settings{
      .patch = config.integer("patch", 1, 1024),
      .embedding = config.integer("embedding", 1, large),
      .heads = config.integer("heads", 1, large),
      .layers = config.integer("layers", 0, 1000),
      .lead = config.integer("lead", 1, 10'000),
      .learning_rate = config.real("learning_rate", 0, 1e3),
      .warm_up_steps = config.integer("warm_up_steps", 0, 1'000'000'000),
      .planet = {.height = config.integer("planet_height", 2, 4096),
                 .width = config.integer("planet_width", 2, 8192),
                 .degree = config.integer("planet_degree", 1, 128),
                 .steps = config.integer("planet_steps", 2, 1'000'000),
                 .held_out = config.integer("planet_held_out", 2, 1'000'000),
                 .seed = config.integer("planet_seed", 0, 1'000'000)},
  };
  if (settings.embedding % settings.heads != 0) {
    throw Error(fmt::format("{}: {} is not a multiple of the {} heads",
                            config.find("embedding")->where, settings.embedding, settings.heads));
  }
  return settings;
}

std::vector<std::string_view> Settings::keys() {
  return {"patch",         "embedding",     "heads",          "layers",       "lead",
          "learning_rate", "warm_up_steps", "planet_height",  "planet_width", "planet_degree",
          "planet_steps",  "planet_seed",   "planet_held_out"};
}

}  // namespace tasks::weather

#include <nlohmann/json.hpp>

#include "bench/study.hpp"
#include "support/error.hpp"
#include "support/files.hpp"

namespace checker::bench {

using nlohmann::json;

void write_trial_run(const std::filesystem::path& file, const TrialRun& run) {
  write_file(file, json{{"loss", run.loss}, {"seconds", run.seconds}}.dump() + "\n");
}

TrialRun read_trial_run(const std::filesystem::path& file) try {
  const auto run = json::parse(read_file(file));
  return {.loss = run.at("loss"), .seconds = run.at("seconds")};
} catch (const json::exception& error) {
  throw Error(file.string() + " is damaged: " + error.what() + " Fix: remove the file.");
}

}  // namespace checker::bench

#include "judge/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "plan/plan.hpp"
#include "process/capture.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {

namespace {

using nlohmann::json;

double number(const json& object, const char* name, double otherwise) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : otherwise;
}

StepDeviations step_from(const json& step) {
  StepDeviations truth{.apart = number(step, "apart", kUnknown),
                       .rates = number(step, "rates", 0),
                       .update = number(step, "update", 0),
                       .known = step.contains("mean"),
                       .mean = number(step, "mean", kUnknown),
                       .local = number(step, "local", kUnknown),
                       .sum = number(step, "sum", kUnknown),
                       .twice = number(step, "twice", kUnknown),
                       .accumulated = number(step, "accumulated", kUnknown),
                       .nothing = number(step, "nothing", kUnknown),
                       .target_mean = number(step, "target_mean", kUnknown),
                       .together = number(step, "together", kUnknown),
                       .target_multiple = number(step, "target_multiple", 0),
                       .multiples = {},
                       .parameters = {},
                       .mean_over = {},
                       .rate_factor = number(step, "rate_factor", 0)};
  if (truth.known) {
    truth.multiples = step.at("multiples").get<std::vector<double>>();
    truth.parameters = step.at("parameters").get<std::vector<std::string>>();
    truth.mean_over = step.at("mean_over").get<std::vector<size_t>>();
  }
  return truth;
}

Cover cover_from(const json& cover) {
  return {.elements = cover.at("elements").get<size_t>(),
          .once = cover.at("once").get<size_t>(),
          .everywhere = cover.at("everywhere").get<size_t>(),
          .nowhere = cover.at("nowhere").get<size_t>(),
          .names = cover.at("names").get<std::vector<std::string>>(),
          .unknown = cover.at("unknown").get<std::vector<size_t>>()};
}

SerialMemory memory_from(const json& memory) {
  SerialMemory serial{.parameters = memory.at("parameters").get<uint64_t>(),
                      .state = memory.at("state").get<uint64_t>(),
                      .block = std::nullopt,
                      .rest = memory.at("rest").get<uint64_t>(),
                      .forward = memory.at("forward").get<uint64_t>(),
                      .forward_most = memory.at("forward_most").get<uint64_t>()};
  if (!memory.at("block").is_null()) serial.block = memory.at("block").get<uint64_t>();
  return serial;
}

SavedModel saved_from(const json& saved) {
  SavedModel model{.files = {},
                   .epoch = saved.at("epoch").get<size_t>(),
                   .elements = saved.at("elements").get<size_t>(),
                   .missing = saved.at("missing").get<size_t>(),
                   .several = saved.at("several").get<size_t>(),
                   .older = saved.at("older").get<size_t>()};
  for (const auto& file : saved.at("files")) {
    model.files.push_back({.file = file.at("file").get<std::string>(),
                           .bytes = file.at("bytes").get<uint64_t>(),
                           .readable = file.at("readable").get<bool>(),
                           .own = file.at("own").get<size_t>()});
  }
  return model;
}

ContinuedRun continued_from(const json& run) {
  ContinuedRun continued;
  continued.steps = run.at("steps").get<size_t>();
  if (continued.steps == 0) return continued;
  continued.epoch = run.at("epoch").get<size_t>();
  continued.unknown = run.at("unknown").get<std::vector<size_t>>();
  continued.elements = run.at("elements").get<size_t>();
  continued.kept = number(run, "kept", kUnknown);
  continued.fresh = number(run, "fresh", kUnknown);
  return continued;
}

ExpectedWorld world_from(const json& world) {
  ExpectedWorld truth;
  if (world.contains("error")) {
    truth.error = world.at("error").get<std::string>();
    return truth;
  }
  truth.training = world.at("training").get<std::vector<double>>();
  truth.validation = world.at("validation").get<std::vector<double>>();
  if (world.at("test").is_number()) truth.test = world.at("test").get<double>();
  if (world.contains("cover")) truth.cover = cover_from(world.at("cover"));
  if (world.contains("memory")) truth.memory = memory_from(world.at("memory"));
  if (world.contains("saved")) truth.saved = saved_from(world.at("saved"));
  if (world.contains("continued")) truth.continued = continued_from(world.at("continued"));
  if (world.contains("test_of_best")) truth.test_of_best = world.at("test_of_best").get<double>();
  for (const auto& rank : world.at("ranks")) {
    auto& seen = truth.ranks.emplace_back();
    for (const auto& step : rank.at("steps")) seen.steps.push_back(step_from(step));
    for (const auto& file : rank.at("files")) {
      seen.files.push_back({file.at("file").get<std::string>(), file.at("holds").get<std::string>(),
                            file.at("format").get<std::string>()});
    }
  }
  return truth;
}

// Where ranks left nothing, nothing can be held against anything.
bool left_something(const RecordedRun& recorded) {
  return std::ranges::any_of(recorded.run.ranks, [](const RankSeen& rank) {
    return !rank.log.events.empty() || !rank.files.empty();
  });
}

}  // namespace

std::vector<ExpectedWorld::Loss> ExpectedWorld::losses() const {
  std::vector<Loss> all;
  for (size_t epoch = 0; epoch < std::max(training.size(), validation.size()); ++epoch) {
    const auto of = " of epoch " + std::to_string(epoch + 1);
    if (epoch < training.size()) all.push_back({"training loss" + of, training[epoch]});
    if (epoch < validation.size()) all.push_back({"validation loss" + of, validation[epoch]});
  }
  if (!validation.empty()) {
    all.push_back({"best validation loss", *std::ranges::min_element(validation)});
  }
  if (test) all.push_back({"test loss", *test});
  return all;
}

void choose_test(ExpectedWorld& truth, const Run& run, double tolerance) {
  if (!truth.test || !truth.test_of_best || run.ranks.empty()) return;
  const auto told = [&](double expected) {
    return std::ranges::any_of(run.ranks[0].reported, [&](double loss) {
      return std::abs(loss - expected) <= tolerance * std::abs(expected);
    });
  };
  if (!told(*truth.test) && told(*truth.test_of_best)) truth.test = truth.test_of_best;
}

Expected nothing_to_replay(const std::vector<RecordedRun>& runs) {
  Expected truth;
  for (const auto& recorded : runs) {
    truth.worlds.emplace_back().ranks.resize(recorded.run.ranks.size());
  }
  return truth;
}

Expected ask_oracle(const std::filesystem::path& replay_program,
                    const std::vector<RecordedRun>& runs, const std::vector<std::string>& options,
                    Holding holding, const std::filesystem::path& folder, const Box* box,
                    ForkServers* servers) {
  if (std::ranges::none_of(runs, left_something)) return nothing_to_replay(runs);
  const auto own = folder / "replay";
  const auto answer = own / "truth.json";
  std::filesystem::create_directories(own);
  Command command;
  command.arguments = {replay_program.string(), answer.string()};
  if (holding == Holding::parameters_or_pieces) command.arguments.emplace_back("--pieces");
  for (const auto& recorded : runs) command.arguments.push_back(recorded.folder.string());
  command.arguments.emplace_back("--");
  command.arguments.insert(command.arguments.end(), options.begin(), options.end());
  command.arguments.insert(command.arguments.end(), {"--output", (own / "output").string()});
  command.environment = {"OMP_NUM_THREADS=1", prepared_data_of(folder)};
  if (box) {
    Mounts mounts{
        .read_only = {replay_program, folder / kPlanFolder}, .writable = {own}, .scratch = {}};
    for (const auto& recorded : runs) mounts.read_only.push_back(recorded.folder);
    box->hand_over(own);
    command = box->wrap(command, mounts);
  } else if (servers) {
    command.server = servers->of(replay_program);
  }
  const auto ran = capture(command);
  if (ran.interrupted_by) throw Error("Interrupted.");
  if (!ran.success()) {
    throw Error("The replay failed, so there is no verdict: " +
                join(split_lines(ran.output), " / "));
  }
  const auto parsed = json::parse(read_file(answer));
  Expected truth;
  for (const auto& world : parsed.at("worlds")) truth.worlds.push_back(world_from(world));
  return truth;
}

}  // namespace checker

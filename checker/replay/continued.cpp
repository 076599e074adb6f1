#include "continued.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "arithmetic.hpp"
#include "fingerprints.hpp"

namespace replay {

using checker::RankSeen;
using checker::StepSeen;
using nlohmann::json;

namespace {

// Schedules need not know how long both runs are: the rates are the recorded ones.
constexpr int64_t kManySteps = 1'000'000;

// What is needed of a rank, without its log.
std::vector<RankSeen> light(const std::vector<RankSeen>& ranks) {
  std::vector<RankSeen> copies;
  for (const auto& rank : ranks) {
    auto& copy = copies.emplace_back();
    copy.model = rank.model;
    copy.parameters = rank.parameters;
    copy.in_pieces = rank.in_pieces;
    copy.steps = rank.steps;
  }
  return copies;
}

// How many of these are not what they should be, element by element.
size_t apart(const Flat& got, const Flat& wanted) {
  if (got.size() != wanted.size()) return got.size();
  double largest = 0;
  for (const double value : wanted) largest = std::max(largest, std::abs(value));
  size_t count = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    count += std::abs(got[i] - wanted[i]) <= kComputed * largest ? 0 : 1;
  }
  return count;
}

// The ranks of the run, if they had started with these parameters.
struct Start {
  Start(const std::vector<RankSeen>& seen, const Flat& parameters)
      : ranks(light(seen)), pieces(ranks, parameters) {
    cover = pieces.cover();
    unknown = cover.at("unknown").get<std::vector<size_t>>();
    unknown.resize(ranks.size());
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      if (!pieces.has(rank) && !ranks[rank].steps.empty())
        unknown[rank] = apart(ranks[rank].steps[0].values, parameters);
    }
  }

  size_t all_unknown() const { return std::accumulate(unknown.begin(), unknown.end(), size_t{0}); }

  std::vector<RankSeen> ranks;
  Pieces pieces;
  json cover;
  std::vector<size_t> unknown;
};

// The largest deviation of what the ranks have after a step.
double follow(Stepper& stepper, const std::vector<StepSeen>& steps) {
  double worst = 0;
  for (size_t t = 0; t + 1 < steps.size(); ++t) {
    worst = std::max(worst, finite(deviation(steps[t + 1].values, stepper.step(steps[t]))));
  }
  return worst;
}

}  // namespace

std::vector<Flat> RunBefore::models() const {
  std::vector<Flat> all;
  for (const auto& epoch : epochs) all.push_back(epoch.values);
  return all;
}

RunBefore run_before(const std::vector<RankSeen>& ranks, const Pieces& pieces,
                     const ExpectedLosses& losses) {
  RunBefore before;
  if (ranks.empty() || ranks[0].steps.empty()) return before;
  before.initial = ranks[0].steps[0].values;
  before.parameters = ranks[0].parameters;
  for (size_t t = 0; t < ranks[0].steps.size(); ++t) {
    before.steps.push_back(pieces.whole_step(ranks, t));
  }
  for (size_t epoch = 0; epoch < ranks[0].trainings().size(); ++epoch) {
    const auto* values = losses.state_after(0, epoch);
    if (!values) break;
    before.epochs.push_back({*values, losses.steps_until(0, epoch)});
  }
  return before;
}

json continued(const tasks::Task& task, const RunBefore& before,
               const std::vector<RankSeen>& ranks) {
  size_t steps = ranks.empty() ? 0 : SIZE_MAX;
  for (const auto& rank : ranks) steps = std::min(steps, rank.steps.size());
  if (steps == 0) return {{"steps", 0}};
  size_t epoch = 0;
  Start start(ranks, before.initial);
  for (size_t i = 0; i < before.epochs.size(); ++i) {
    Start other(ranks, before.epochs[i].values);
    // Of equal ones the latest: what an epoch without a step leaves is that epoch's as well.
    if (other.all_unknown() > start.all_unknown()) continue;
    start = std::move(other);
    epoch = i + 1;
  }
  json result = {{"epoch", epoch},
                 {"unknown", start.unknown},
                 {"elements", before.initial.size()},
                 {"once", start.pieces.any() ? start.cover["once"] : json(before.initial.size())},
                 {"nowhere", start.pieces.any() ? start.cover["nowhere"] : json(0)},
                 {"steps", steps}};
  if (steps < 2) return result;
  std::vector<StepSeen> own;
  for (size_t t = 0; t < steps; ++t) own.push_back(start.pieces.whole_step(start.ranks, t));
  const auto model = task.make_model();
  const auto parameters = ordered_parameters(*model, before.parameters);
  Stepper kept(task, parameters, kManySteps);
  const size_t done = epoch == 0 ? 0 : before.epochs[epoch - 1].steps;
  for (size_t t = 0; t < std::min(done, before.steps.size()); ++t) kept.step(before.steps[t]);
  result["kept"] = follow(kept, own);
  Stepper fresh(task, parameters, kManySteps);
  result["fresh"] = follow(fresh, own);
  return result;
}

}  // namespace replay

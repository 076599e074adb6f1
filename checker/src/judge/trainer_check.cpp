#include "judge/trainer_check.hpp"

#include <algorithm>

#include "box/enclosure.hpp"
#include "judge/experiment.hpp"
#include "judge/oracle.hpp"
#include "judge/rules/rules.hpp"
#include "judge/symbols.hpp"
#include "judge/timeline.hpp"
#include "judge/traffic.hpp"
#include "ladder/render.hpp"

namespace checker {

namespace {

// In this order: what comes first explains what comes later.
Findings judge_world(const Scene& scene) {
  Findings findings;
  rules::membership(scene, findings);
  rules::purposes(scene, findings);
  if (findings.empty()) {
    rules::training_shares(scene, findings);
    rules::evaluation_shares(scene, findings);
    rules::epochs(scene, findings);
  }
  rules::collectives(scene, findings);
  rules::gradients(scene, findings);
  rules::standstill(scene, findings);
  const size_t before_trouble = findings.size();
  if (findings.empty()) rules::trouble(scene, findings);
  if (findings.size() == before_trouble) {  // else what came later tells nothing
    rules::losses(scene, findings);
    rules::speaking(scene, findings);
    rules::saving(scene, findings);
    rules::leaving(scene, findings);
  }
  if (findings.empty()) rules::whole(scene, findings);
  return findings;
}

// What one world shows, another mostly shows as well.
void add_unknown(Findings& all, Findings&& findings) {
  for (auto& finding : findings) {
    const bool known = std::ranges::any_of(all, [&](const Finding& other) {
      return other.todo == finding.todo && other.id == finding.id;
    });
    if (!known) all.push_back(std::move(finding));
  }
}

double largest_deviation(const Scene& scene) {
  double largest = scene.ended_well() ? rules::loss_deviation(scene) : 0;
  const bool mean = scene.expects(feature::ddp);
  for (const auto& rank : scene.truth.ranks) {
    for (const auto& step : rank.steps) {
      for (const double deviation :
           {mean ? step.mean : step.local, mean ? step.apart : 0, step.update, step.loss}) {
        if (deviation < kUnknown) largest = std::max(largest, deviation);
      }
    }
    if (rank.evaluations < kUnknown) largest = std::max(largest, rank.evaluations);
  }
  return largest;
}

// Two ranks show most, and most clearly.
std::vector<size_t> most_telling_first(const std::vector<Trial>& trials) {
  std::vector<size_t> order(trials.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](size_t i) {
    const auto world = trials[i].run.world;
    return world == 1 ? 100 : world;
  });
  return order;
}

}  // namespace

TrainerChecked check_trainer(const Project& project, const Ladder& ladder, const Step& step,
                             const TrainerCheckOptions& options) {
  auto arguments = options.secret;
  arguments.insert(arguments.end(), {"--device", options.device});
  options.on_stage("running");
  const auto passed_before = loopback_bytes();
  const auto trials = run_experiment({.program = options.program,
                                      .folder = options.folder,
                                      .options = arguments,
                                      .worlds = options.worlds,
                                      .on_gpus = options.device != "cpu",
                                      .box = options.box});
  const auto passed = loopback_bytes() - passed_before;
  options.on_stage("replaying");
  const auto truth =
      ask_oracle(project.build / "bin" / "replay", trials, arguments, options.folder, options.box);
  options.on_stage("judging");
  Symbols symbols(options.program, options.source, options.shown, options.box);
  const Locate locate = [&](const RankSeen& rank, const CollectiveSeen& collective) {
    return symbols.locate(rank, collective);
  };
  const auto features = features_until(ladder, step, Rendering::solution);
  TrainerChecked checked;
  for (const size_t i : most_telling_first(trials)) {
    const Scene scene{trials[i], truth.worlds[i], truth.sizes, ladder, step, features, locate};
    add_unknown(checked.findings, judge_world(scene));
    if (!checked.timeline && !checked.findings.empty() && scene.world() > 1) {
      checked.timeline = timeline_of(scene.run());
    }
    checked.largest_deviation = std::max(checked.largest_deviation, largest_deviation(scene));
    checked.cut_off = checked.cut_off || !trials[i].run.result.success();
  }
  // In a box nobody else uses the network.
  if (options.box) {
    const int todo = ladder.todo_of(feature::setup);
    if (const auto forged = missing_traffic(trials, passed, todo)) checked.findings = {*forged};
  }
  return checked;
}

}  // namespace checker

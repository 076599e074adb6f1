#include "judge/trainer_check.hpp"

#include <algorithm>

#include "box/enclosure.hpp"
#include "course/render.hpp"
#include "judge/continued_run.hpp"
#include "judge/experiment.hpp"
#include "judge/oracle.hpp"
#include "judge/rules/rules.hpp"
#include "judge/rules/table.hpp"
#include "judge/symbols.hpp"
#include "judge/tell.hpp"
#include "judge/timeline.hpp"
#include "judge/traffic.hpp"
#include "support/text.hpp"

namespace checker {

namespace {

// Such a symptom does not explain what comes later.
bool explains_nothing(const Symptom& symptom) {
  return symptom.kind == FindingKind::not_started || symptom.kind == FindingKind::note ||
         symptom.kind == FindingKind::consequence;
}

// Another world may show the same as a mistake of its own.
bool says_little(const Finding& finding) {
  return finding.kind == FindingKind::not_started || finding.kind == FindingKind::consequence;
}

std::string where(const RunContext& context) {
  return "at world size " + std::to_string(context.world());
}

// Who makes batches of their own, by other ways than the task's datasets, cannot be followed.
bool has_unknown_samples(const RankSeen& rank) {
  return std::ranges::any_of(rank.passes, [](const Pass& pass) {
    return std::ranges::any_of(pass.batches,
                               [](const BatchSeen& batch) { return batch.ids.empty(); });
  });
}

// Why the evidence of a run cannot be judged: a part of it is missing.
std::optional<std::string> missing_evidence(const RunContext& context) {
  for (size_t rank = 0; rank < context.world(); ++rank) {
    const auto& log = context.run().ranks[rank].log;
    const auto who = where(context) + " rank " + std::to_string(rank);
    if (log.dropped > 0) {
      return who + " recorded more than its log can hold; " + count_of(log.dropped, "record") +
             (log.dropped == 1 ? " is" : " are") + " missing";
    }
    if (log.broken) return who + "'s log is damaged";
    if (has_unknown_samples(context.run().ranks[rank])) {
      return who + " computed losses of samples that come from no dataset of the task";
    }
    if (const auto& unread = context.run().ranks[rank].unread) {
      return who + " recorded " + *unread +
             " in another type than the task's model has; leave the model's type as it is";
    }
  }
  return std::nullopt;
}

// In this order: what comes first explains what comes later.
Symptoms judge_world(const RunContext& context) {
  Symptoms symptoms;
  if (missing_evidence(context)) {  // Then only a crash is certain.
    rules::trouble(context, symptoms);
    return symptoms;
  }
  const rules::ChapterRules rules(context.course.chapter_of(context.step));
  rules.look(rules::Stage::place, context, symptoms);
  if (symptoms.empty()) rules.look(rules::Stage::work, context, symptoms);
  rules.look(rules::Stage::numbers, context, symptoms);
  // A TODO that is not started yet does not explain a hang or a crash.
  const size_t before_trouble = symptoms.size();
  if (std::ranges::all_of(symptoms, explains_nothing)) {
    rules::trouble(context, symptoms);
  } else {
    rules::aftermath(context, symptoms);
  }
  // Else what came later tells nothing.
  if (symptoms.size() == before_trouble) rules.look(rules::Stage::results, context, symptoms);
  if (std::ranges::all_of(symptoms, explains_nothing))
    rules.look(rules::Stage::whole, context, symptoms);
  return symptoms;
}

// A run that starts from what another one saved.
Symptoms judge_continued(const RunContext& context) {
  Symptoms symptoms;
  if (!missing_evidence(context)) {
    const rules::ChapterRules rules(context.course.chapter_of(context.step));
    rules.look(rules::Stage::continued, context, symptoms);
  }
  if (symptoms.empty()) {
    rules::trouble(context, symptoms);
    // That the other run came through tells more than where this one was.
    for (auto& symptom : symptoms) symptom.blame = {"phase.continuing"};
  }
  return symptoms;
}

// What one world shows, another mostly shows as well.
void add_unknown(Findings& all, Findings&& findings) {
  for (auto& finding : findings) {
    const bool known = std::ranges::any_of(all, [&](const Finding& other) {
      return other.todo == finding.todo && other.id == finding.id &&
             (says_little(finding) || !says_little(other));
    });
    if (known) continue;
    std::erase_if(all, [&](const Finding& other) {
      return other.todo == finding.todo && other.id == finding.id;
    });
    all.push_back(std::move(finding));
  }
}

// What could not be judged, and why; what was found stands all the same.
void add_unjudged(const RunContext& context, std::vector<Unjudged>& all) {
  const auto add = [&](int todo, const std::string& reason) {
    const auto known = [&](const Unjudged& other) { return other.todo == todo; };
    if (std::ranges::none_of(all, known)) all.push_back({todo, reason});
  };
  if (const auto why = missing_evidence(context)) add(0, *why);
  if (context.expects(feature::print0) && context.run().ranks[0].lines_left_out > 0) {
    add(blamed(context.course, context.step, {"other_ranks_print"}),
        where(context) + " rank 0 printed more lines than are read");
  }
  if (!context.ended_well()) return;
  if (const auto rank = rules::silent_about_losses(context)) {
    add(blamed(context.course, context.step, {"loss_not_global"}),
        where(context) + " rank " + std::to_string(*rank) + " never calls progress.report");
  }
}

// Where a file cannot be read, a wrong start may be the fault of whoever wrote it or read it.
void add_unjudged_start(const RunContext& context, std::vector<Unjudged>& all) {
  if (const auto why = missing_evidence(context)) {
    all.push_back({blamed(context.course, context.step, {"phase.continuing"}), *why});
  }
  const auto& truth = context.truth;
  if (!truth.saved || !truth.continued || truth.continued->starts_right()) return;
  for (const auto& file : truth.saved->files) {
    if (file.readable) continue;
    const auto reason = file.file.filename().string() +
                        " has a format that the checker does not know, so it cannot tell "
                        "whether the model was saved or read wrong";
    for (const auto* entry : {"parts_missing", "starts_elsewhere"}) {
      all.push_back({blamed(context.course, context.step, {entry}), reason});
    }
    return;
  }
}

double largest_deviation(const RunContext& context) {
  double largest = context.ended_well() ? rules::loss_deviation(context) : 0;
  const bool mean = context.expects(feature::ddp);
  const bool targets = context.expects(feature::target_mean);
  for (const auto& rank : context.truth.ranks) {
    for (const auto& step : rank.steps) {
      for (const double deviation : {targets ? std::min(step.target_mean, step.together)
                                     : mean  ? step.mean
                                             : step.local,
                                     mean ? step.apart : 0, step.update}) {
        if (deviation < kUnknown) largest = std::max(largest, deviation);
      }
    }
  }
  return largest;
}

// Two ranks show most, and most clearly.
std::vector<size_t> most_telling_first(const std::vector<RecordedRun>& runs) {
  std::vector<size_t> order(runs.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](size_t i) {
    const auto world = runs[i].run.world;
    return world == 1 ? 100 : world;
  });
  return order;
}

}  // namespace

TrainerChecked check_trainer(const Project& project, const Course& course, const Step& step,
                             const TrainerCheckOptions& options) {
  const bool trains = step.kind == ProgramKind::trainer;
  auto plan = options.plan;
  auto& arguments = plan.options;
  if (trains) arguments.insert(arguments.end(), {"--device", options.device});
  // The user says which backend, so that a program shows whether it listens.
  if (trains && options.device == "cpu") {
    arguments.insert(arguments.end(), {"--backend", "gloo"});
  }
  const auto features = features_until(course, step, Rendering::solution);
  // Until one rank writes for all, every rank writes the same files, which may be broken then.
  // A plain program's ranks share a folder as well.
  const bool shares = !trains || features.contains(std::string(feature::save0));
  const auto holding = features.contains(std::string(feature::fsdp)) ? Holding::parameters_or_pieces
                                                                     : Holding::parameters;
  options.on_stage("running");
  const auto passed_before = loopback_bytes();
  const Experiment experiment{.program = options.program,
                              .folder = options.folder,
                              .options = arguments,
                              .reads = {options.folder / kPlanFolder},
                              .trains = trains,
                              .worlds = options.plan.worlds,
                              .seed = options.plan.seed,
                              .file_shim = shares ? project.file_shim() : "",
                              .on_gpus = options.device != "cpu",
                              .holding = holding,
                              .box = options.box,
                              .servers = options.servers};
  const auto runs = run_experiment(experiment);
  const auto continued = run_continued(experiment, options.plan, runs);
  const auto passed = loopback_bytes() - passed_before;
  options.on_stage("replaying");
  auto truth = trains ? ask_oracle(project.build / "bin" / "replay", runs, arguments, holding,
                                   options.folder, options.box, options.servers)
                      : nothing_to_replay(runs);
  options.on_stage("judging");
  Symbols symbols(options.program, options.source, options.shown, options.box);
  const Locate locate = [&](const RankSeen& rank, const CollectiveSeen& collective) {
    return symbols.locate(rank, collective);
  };
  TrainerChecked checked;
  for (const size_t i : most_telling_first(runs)) {
    choose_test(truth.worlds[i], runs[i].run, options.plan.loss_tolerance);
    const RunContext context{runs[i], truth.worlds[i], plan, course, step, features, locate};
    add_unknown(checked.findings, tell(course, step, judge_world(context), options.untouched));
    add_unjudged(context, checked.unjudged);
    if (continued[i]) {
      const auto shorter = plan_of_continued(plan);
      const RunContext further{*continued[i], truth.worlds[i], shorter, course,
                               step,          features,        locate};
      add_unknown(checked.findings,
                  tell(course, step, judge_continued(further), options.untouched));
      add_unjudged_start(further, checked.unjudged);
    }
    if (!checked.timeline && !checked.findings.empty() && context.world() > 1) {
      checked.timeline = timeline_of(context.run());
    }
    checked.largest_deviation = std::max(checked.largest_deviation, largest_deviation(context));
    checked.cut_off = checked.cut_off || !runs[i].run.result.success();
  }
  // In a box nobody else uses the network.
  if (options.box) {
    if (const auto forged = missing_traffic(runs, passed)) {
      checked.findings = {tell(course, step, *forged)};
    }
  }
  return checked;
}

}  // namespace checker

#include <algorithm>

#include "judge/rules/rules.hpp"

namespace checker::rules {

namespace {

struct Reading {
  const char* id;
  const char* what;
  const char* why;
};

constexpr Reading kNothing{
    "no_gradients", "The optimizer steps without gradients.",
    "It holds other parameters than those that the loss depends on: make the optimizer from the "
    "parameters of the very model that is trained."};
constexpr Reading kLocal{
    "gradients_not_averaged", "Each rank trains with its own gradients only: nothing is averaged.",
    "The forward pass must go through the DistributedDataParallel wrapper: it is the wrapper that "
    "averages the gradients over the ranks in the backward pass. Calling the module inside, or not "
    "wrapping it, leaves every rank with a model of its own."};
constexpr Reading kSum{
    "gradients_summed", "The gradients are the sum over the ranks, not the mean.",
    "Divide by the world size, or reduce with AVG: otherwise the step grows with "
    "the number of ranks. An adaptive optimizer hides this, others do not."};
constexpr Reading kTwice{"gradients_divided_twice",
                         "The gradients are divided by the world size once too often.",
                         "DistributedDataParallel (or AVG) divides already."};
constexpr Reading kAccumulated{
    "gradients_accumulate", "The gradients of earlier steps are still in there.",
    "optimizer.zero_grad() belongs into every step, before backward(): backward() adds to what is "
    "there."};
constexpr Reading kSome{"some_gradients_not_averaged",
                        "Some parameters' gradients are not the mean over the ranks.",
                        "Every parameter has to be averaged, on every rank, in every step."};
constexpr Reading kOther{
    "gradients_wrong", "The gradients are not the mean over the ranks' gradients.",
    "Before each optimizer step every rank must hold the mean of what the ranks "
    "computed on their own batches. DistributedDataParallel does that."};
constexpr Reading kLoop{"training_step_wrong", "The training step is not what it was as given.",
                        "zero_grad, forward, loss, backward, step: the loop was complete."};

const Reading& read(const StepTruth& step, size_t world, double tolerance) {
  const auto fits = [&](double deviation) { return deviation < tolerance; };
  if (step.nothing == 0) return kNothing;
  if (world > 1 && fits(step.local)) return kLocal;
  if (world > 1 && fits(step.sum)) return kSum;
  if (world > 1 && fits(step.twice)) return kTwice;
  if (fits(step.accumulated)) return kAccumulated;
  return kOther;
}

class Gradients {
 public:
  Gradients(const Scene& scene, Findings& findings)
      : scene_(scene), findings_(findings), ddp_(scene.expects(feature::ddp)) {}

  void judge() {
    size_t steps = 0;
    for (const auto& rank : scene_.truth.ranks) steps = std::max(steps, rank.steps.size());
    for (size_t t = 0; t < steps; ++t) {
      if (apart(t) || wrong_gradients(t) || wrong_rates(t) || wrong_update(t)) return;
    }
  }

 private:
  std::vector<std::pair<size_t, const StepTruth*>> at(size_t t) const {
    std::vector<std::pair<size_t, const StepTruth*>> all;
    for (size_t rank = 0; rank < scene_.truth.ranks.size(); ++rank) {
      const auto& steps = scene_.truth.ranks[rank].steps;
      if (t < steps.size()) all.emplace_back(rank, &steps[t]);
    }
    return all;
  }

  bool apart(size_t t) {
    // Without DDP each rank trains a model of its own; and what a sampler of the rank's own draws
    // from the global generator changes the start as well.
    if (!ddp_ && (t > 0 || !findings_.empty())) return false;
    std::vector<size_t> ranks;
    double worst = 0;
    for (const auto& [rank, step] : at(t)) {
      if (step->apart <= scene_.tolerance()) continue;
      ranks.push_back(rank);
      worst = std::max(worst, step->apart);
    }
    if (ranks.empty()) return false;
    const bool first = t == 0;
    findings_.push_back(
        {ddp_ ? scene_.blame({feature::ddp}) : scene_.blame({feature::setup, feature::samplers}),
         first ? "different_start" : "parameters_drift_apart",
         first ? "The ranks start from different parameters."
               : "The ranks' parameters drift apart.",
         first
             ? "All ranks must begin with the same model: the same seed on every rank, or a "
               "broadcast from rank 0, as DistributedDataParallel does when it is made. Averaged "
               "gradients alone never bring different models together."
             : "Same start, same gradients, same optimizer: then parameters stay equal to the last "
               "bit. Something changes them on one rank only.",
         {ranks_in_words(ranks) + " before step " + std::to_string(t + 1) + ", " + scene_.where() +
          ": parameters differ from rank 0's by " + digits(worst) + " (relative)"},
         "",
         FindingKind::mistake,
         worst});
    return true;
  }

  bool wrong_gradients(size_t t) {
    std::vector<size_t> ranks;
    const StepTruth* example = nullptr;
    for (const auto& [rank, step] : at(t)) {
      if (!step->known || (ddp_ ? step->mean : step->local) <= scene_.tolerance()) continue;
      ranks.push_back(rank);
      // A rank that holds something telling, rather than one that is wrong by its neighbour's
      // fault.
      if (!example || &read(*example, scene_.world(), scene_.tolerance()) == &kOther)
        example = step;
    }
    if (ranks.empty()) return false;
    const Reading* reading = &read(*example, scene_.world(), scene_.tolerance());
    if (!ddp_) reading = reading == &kAccumulated || reading == &kNothing ? reading : &kLoop;
    std::vector<std::string> evidence = {
        ranks_in_words(ranks) + ", step " + std::to_string(t + 1) + ", " + scene_.where() +
        ": gradients differ from the " + (ddp_ ? "mean over the ranks" : "batch's") + " by " +
        digits(ddp_ ? example->mean : example->local) + " (relative)"};
    const auto all = scene_.run().ranks[ranks[0]].parameters.size();
    const auto& names = example->parameters;
    if (ddp_ && !names.empty() && names.size() < all) {
      std::string list;
      for (size_t i = 0; i < std::min<size_t>(names.size(), 4); ++i) {
        list += (i > 0 ? ", " : "") + names[i];
      }
      evidence.push_back("only these: " + list + (names.size() > 4 ? " ..." : ""));
      if (reading == &kOther) reading = &kSome;
    }
    // Before there is anything to average, the step's own work has broken the loop.
    const int todo = scene_.blame({feature::ddp, feature::training_loader, feature::setup});
    const bool not_started = reading == &kLocal && !any_collective();
    findings_.push_back({todo, reading->id, reading->what, reading->why, std::move(evidence), "",
                         not_started ? FindingKind::not_started : FindingKind::mistake,
                         ddp_ ? example->mean : example->local});
    return true;
  }

  // Before anything is averaged the ranks need not talk; whoever makes the wrapper, they do.
  bool any_collective() const {
    return std::ranges::any_of(scene_.run().ranks,
                               [](const RankSeen& rank) { return !rank.collectives.empty(); });
  }

  bool wrong_rates(size_t t) {
    for (const auto& [rank, step] : at(t)) {
      if (step->rates <= scene_.tolerance()) continue;
      findings_.push_back(
          {scene_.blame({feature::ddp, feature::training_loader, feature::setup}),
           "learning_rate_not_the_schedules",
           "The optimizer steps with another learning rate than the task's schedule sets.",
           "The schedule sets the rate of every step, the same on every rank. Call its step() "
           "once after each step of the optimizer, and change no rate beside it.",
           {"rank " + std::to_string(rank) + ", step " + std::to_string(t + 1) + ", " +
            scene_.where() + ": off by " + digits(step->rates) + " (relative)"},
           "",
           FindingKind::mistake,
           step->rates});
      return true;
    }
    return false;
  }

  bool wrong_update(size_t t) {
    for (const auto& [rank, step] : at(t)) {
      if (step->update <= scene_.tolerance()) continue;
      findings_.push_back(
          {scene_.blame({feature::ddp}),
           "parameters_changed_beside_the_optimizer",
           "Something beside the optimizer changes the parameters.",
           "Average gradients before the step, not parameters after it: the optimizer's own state "
           "(AdamW's moments) stays different from rank to rank otherwise.",
           {"rank " + std::to_string(rank) + ", after step " + std::to_string(t + 1) + ", " +
            scene_.where() + ": off by " + digits(step->update) + " (relative)"},
           "",
           FindingKind::mistake,
           step->update});
      return true;
    }
    return false;
  }

  const Scene& scene_;
  Findings& findings_;
  bool ddp_;
};

}  // namespace

void gradients(const Scene& scene, Findings& findings) {
  if (!scene.truth.error.empty() && scene.run().result.success()) {
    findings.push_back({scene.blame({feature::ddp, feature::training_loader, feature::setup}),
                        "optimizer_of_another_model",
                        "The optimizer holds other parameters than those of the model.",
                        kNothing.why,
                        {scene.where() + ": " + scene.truth.error},
                        ""});
    return;
  }
  Gradients(scene, findings).judge();
}

std::vector<std::string> second_opinion(const Scene& scene) {
  std::vector<std::string> disagreements;
  const bool ddp = scene.expects(feature::ddp);
  for (size_t rank = 0; rank < scene.truth.ranks.size(); ++rank) {
    const auto& steps = scene.truth.ranks[rank].steps;
    for (size_t t = 0; t < steps.size(); ++t) {
      const double first = ddp ? steps[t].mean : steps[t].local;
      const double second = ddp ? steps[t].fingerprint_mean : steps[t].fingerprint_local;
      if (!steps[t].known || second == kUnknown) continue;
      if ((first <= scene.tolerance()) == (second <= scene.tolerance())) continue;
      disagreements.push_back(scene.where() + " rank " + std::to_string(rank) + ", step " +
                              std::to_string(t + 1) + ": gradients off by " + digits(first) +
                              " by name, " + digits(second) + " by fingerprint");
      break;
    }
  }
  return disagreements;
}

}  // namespace checker::rules

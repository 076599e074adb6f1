#include <algorithm>
#include <cmath>
#include <limits>

#include "evidence/collective_kinds.hpp"
#include "judge/collectives.hpp"
#include "judge/phases.hpp"
#include "judge/rules/passes.hpp"
#include "judge/rules/printed.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

namespace {

struct Totals {
  double sum = 0, count = 0;
  double mean() const { return sum / count; }
};

Totals totals_of(const Pass& pass) {
  Totals totals;
  for (const auto& batch : pass.batches) {
    totals.sum += batch.loss_sum;
    totals.count += batch.loss_count;
  }
  return totals;
}

double deviation(double got, double wanted) { return std::abs(got - wanted) / std::abs(wanted); }

// From the value that comes closest.
double least_deviation(const std::vector<double>& values, double wanted) {
  double least = std::numeric_limits<double>::infinity();
  for (const double value : values) least = std::min(least, deviation(value, wanted));
  return least;
}

// The first rank whose share alone has this mean; their number if none has.
size_t rank_with_mean(double value, const std::vector<Totals>& ranks, double tolerance) {
  const auto near = [&](double mean) { return deviation(value, mean) <= tolerance; };
  return static_cast<size_t>(std::ranges::find_if(ranks, near, &Totals::mean) - ranks.begin());
}

// The line of evidence that says what a wrong value is, if it is one of the usual ones.
std::string reading(double value, const std::vector<Totals>& ranks, size_t rank, double tolerance) {
  const auto near = [&](double got, double wanted) { return deviation(got, wanted) <= tolerance; };
  const double world = static_cast<double>(ranks.size());
  Totals all;
  double means = 0;
  for (const auto& part : ranks) {
    all.sum += part.sum;
    all.count += part.count;
    means += part.mean();
  }
  if (near(value, all.mean())) return "got_mean_of_what_was_used";
  if (near(value, ranks[rank].mean())) return "got_own_mean";
  if (near(value, means / world)) return "got_mean_of_means";
  if (near(value, means)) return "got_sum_of_means";
  if (near(value, all.mean() / world)) return "got_divided_once_more";
  if (near(value, all.sum / ranks[rank].count)) return "got_sum_by_own_count";
  if (near(value, ranks[rank].sum / all.count)) return "got_own_sum_by_count";
  if (near(value, all.mean() * world)) return "got_times_the_world";
  return rank_with_mean(value, ranks, tolerance) < ranks.size() ? "got_anothers_mean" : "got";
}

// Whether ranks issue collectives while they evaluate, as they do not before the TODO.
bool evaluates_together(const RunContext& context) {
  return std::ranges::any_of(context.run().ranks, [](const RankSeen& rank) {
    return std::ranges::any_of(rank.collectives, [&](const CollectiveSeen& collective) {
      return phase_at(rank, collective.event) == Phase::evaluating;
    });
  });
}

class Losses {
 public:
  Losses(const RunContext& context, Symptoms& symptoms) : context_(context), symptoms_(symptoms) {}

  void judge() {
    const auto training = whole_trainings(context_);
    const auto validation = whole_evaluations(context_, Split::validation);
    const auto test = whole_evaluations(context_, Split::test);
    const size_t epochs =
        std::min({training.size(), validation.size(), context_.truth.training.size(),
                  context_.truth.validation.size()});
    for (size_t epoch = 0; epoch < epochs; ++epoch) {
      const auto of = " in epoch " + std::to_string(epoch + 1);
      check("training loss" + of, true, context_.truth.training[epoch], training[epoch], 2 * epoch);
      check("validation loss" + of, false, context_.truth.validation[epoch], validation[epoch],
            2 * epoch + 1);
    }
    if (!test.empty() && context_.truth.test) {
      check("test loss", false, *context_.truth.test, test[0], 2 * epochs);
    }
    if (!wrong_ranks_.empty()) report();
  }

  double largest_deviation() const { return largest_; }
  std::optional<size_t> silent() const { return silent_; }

 private:
  // place: where the value stands among those that a rank of the original program would report.
  void check(const std::string& name, bool training, double wanted,
             const std::vector<const Pass*>& passes, size_t place) {
    std::vector<Totals> totals;
    for (const auto* pass : passes) totals.push_back(totals_of(*pass));
    // Once rank 0 speaks for all, the others need not know.
    const size_t speakers = context_.expects(feature::print0) ? 1 : context_.world();
    for (size_t rank = 0; rank < speakers; ++rank) {
      const auto& seen = context_.run().ranks[rank];
      const auto& reported = seen.reported;
      // A rank that says nothing claims nothing; what must be printed is another rule's.
      if (seen.output.empty()) continue;
      if (reported.empty()) {
        // What it prints has as many digits as it has: enough to be right, not to be wrong.
        if (!shown(numbers_in(seen.output), wanted) && !silent_) silent_ = rank;
        continue;
      }
      const double apart = least_deviation(reported, wanted);
      largest_ = std::max(largest_, apart);
      if (apart <= context_.loss_tolerance()) continue;
      if (context_.expects(feature::print0) && only_right_ones(reported)) continue;
      if (std::isfinite(apart)) deciding_ = std::max(deciding_, apart);
      ++(training ? training_ : evaluation_);
      wrong_ranks_.push_back(rank);
      wrong_.push_back({rank, passes[rank], name});
      own_shares_only_ =
          own_shares_only_ && place < reported.size() &&
          deviation(reported[place], totals[rank].mean()) <= context_.loss_tolerance();
      if (evidence_.size() >= 4) continue;
      EvidenceLine seen_loss{"lacking",
                             {{"rank", rank}, {"loss", name}, {"expected", digits(wanted)}}};
      if (place < reported.size()) {
        seen_loss.name = reading(reported[place], totals, rank, context_.loss_tolerance());
        seen_loss.values["got"] = digits(reported[place]);
        const auto used = samples_in(passes), size = context_.size_of(passes.front()->split);
        // It is the mean that it should be, of what was computed; then the losses are other ones.
        if (used == size && seen_loss.name == "got_mean_of_what_was_used") seen_loss.name = "got";
        seen_loss.values["used"] = used;
        seen_loss.values["size"] = size;
        seen_loss.values["other"] =
            rank_with_mean(reported[place], totals, context_.loss_tolerance());
      }
      evidence_.push_back(std::move(seen_loss));
      if (!training && in_training_mode(seen, *passes[rank])) {
        evidence_.push_back({"in_training_mode", {{"rank", rank}}});
        in_training_mode_ = true;
      }
    }
  }

  static bool in_training_mode(const RankSeen& rank, const Pass& pass) {
    return std::ranges::any_of(pass.batches, [&](const BatchSeen& batch) {
      return batch.forward && rank.forwards[*batch.forward].training;
    });
  }

  static size_t samples_in(const std::vector<const Pass*>& passes) {
    size_t samples = 0;
    for (const auto* pass : passes) samples += pass->ids().size();
    return samples;
  }

  // Then a loss that is missing was not printed, which is another rule's.
  bool only_right_ones(const std::vector<double>& reported) const {
    std::vector<double> right;
    for (const auto& loss : context_.truth.losses()) right.push_back(loss.value);
    return std::ranges::all_of(reported, [&](double value) {
      return least_deviation(right, value) <= context_.loss_tolerance();
    });
  }

  // Before the TODO every loss is that of the rank's own share, in training and in evaluation.
  bool not_started() const {
    return own_shares_only_ && training_ > 0 && evaluation_ > 0 && !evaluates_together(context_);
  }

  // Ranks whose parameters differ evaluate different models, whatever they exchange.
  bool parameters_are_apart() const {
    return std::ranges::any_of(context_.truth.ranks, [&](const ExpectedRank& rank) {
      return std::ranges::any_of(rank.steps, [&](const StepDeviations& step) {
        return step.apart > context_.tolerance();
      });
    });
  }

  FindingKind kind() const {
    if (not_started()) return FindingKind::not_started;
    const bool others = parameters_are_apart() || parameters_change_beside_the_optimizer(context_);
    const bool follows = training_ == 0 && others;
    return follows ? FindingKind::consequence : FindingKind::mistake;
  }

  // What the first of the ranks sends without success.
  void add_calls() {
    const size_t rank = wrong_ranks_.front();
    const auto& seen = context_.run().ranks[rank];
    if (const auto* call = not_awaited(seen)) {
      evidence_.push_back(seen_call(context_, "not_awaited", rank, *call));
    } else if (const auto* sum = small_sum(seen); sum && own_shares_only_) {
      const auto& wrong = *std::ranges::find(wrong_, rank, &WrongLoss::rank);
      const bool skipped = !is_called_for(seen, *sum, *wrong.pass);
      evidence_.push_back(seen_call(context_, skipped ? "skipped" : "not_used", rank, *sum));
      evidence_.back().values["loss"] = wrong.name;
    }
  }

  // Whether the rank issues such a call between this pass's first batch and the next pass.
  static bool is_called_for(const RankSeen& rank, const CollectiveSeen& call, const Pass& pass) {
    const size_t begin = pass.batches.front().event;
    size_t end = SIZE_MAX;
    for (const auto& other : rank.passes) {
      const size_t begins = other.batches.front().event;
      if (begins > begin) end = std::min(end, begins);
    }
    return std::ranges::any_of(rank.collectives, [&](const CollectiveSeen& seen) {
      return begin < seen.event && seen.event < end && seen.call.op_type == call.call.op_type &&
             seen.call.elements == call.call.elements;
    });
  }

  // An all_reduce of some numbers, as of losses and counts, in the pass whose loss is wrong; null:
  // none is known.
  const CollectiveSeen* small_sum(const RankSeen& rank) const {
    constexpr uint64_t kFewNumbers = 8;
    const auto found = std::ranges::find_if(rank.collectives, [&](const CollectiveSeen& seen) {
      const auto phase = phase_at(rank, seen.event);
      return static_cast<CollectiveKind>(seen.call.op_type) == CollectiveKind::all_reduce &&
             seen.call.elements <= kFewNumbers &&
             (phase == Phase::evaluating ? evaluation_ > 0 : training_ > 0);
    });
    return found == rank.collectives.end() ? nullptr : &*found;
  }

  void report() {
    std::ranges::sort(wrong_ranks_);
    wrong_ranks_.erase(std::unique(wrong_ranks_.begin(), wrong_ranks_.end()), wrong_ranks_.end());
    std::string id = "loss_not_global";
    if (!context_.expects(feature::print0) && wrong_ranks_.size() < context_.world()) {
      id = "loss_global_on_some_ranks";
    } else if (training_ == 0) {
      id = "evaluation_loss_not_global";
    } else if (evaluation_ == 0) {
      id = "training_loss_not_global";
    }
    add_calls();
    auto values = context_.values();
    values["ranks"] = ranks_value(wrong_ranks_);
    symptoms_.push_back({.id = id,
                         .values = values,
                         .evidence = std::move(evidence_),
                         .variant = in_training_mode_ ? "training_mode" : "",
                         .kind = kind(),
                         .deviation = deciding_});
  }

  struct WrongLoss {
    size_t rank;
    const Pass* pass;
    std::string name;
  };

  const RunContext& context_;
  Symptoms& symptoms_;
  size_t training_ = 0, evaluation_ = 0;
  bool in_training_mode_ = false;
  bool own_shares_only_ = true;  ///< each wrong loss is that of the rank's own share
  double largest_ = 0, deciding_ = 0;
  std::optional<size_t> silent_;  ///< the first rank that reports nothing
  std::vector<size_t> wrong_ranks_;
  std::vector<WrongLoss> wrong_;  ///< in the order of the epochs
  std::vector<EvidenceLine> evidence_;
};

}  // namespace

void losses(const RunContext& context, Symptoms& symptoms) {
  if (context.expects(feature::all_reduce)) Losses(context, symptoms).judge();
}

std::optional<size_t> silent_about_losses(const RunContext& context) {
  if (!context.expects(feature::all_reduce)) return std::nullopt;
  Symptoms ignored;
  Losses losses(context, ignored);
  losses.judge();
  return losses.silent();
}

double loss_deviation(const RunContext& context) {
  if (!context.expects(feature::all_reduce)) return 0;
  Symptoms ignored;
  Losses losses(context, ignored);
  losses.judge();
  return losses.largest_deviation();
}

}  // namespace checker::rules

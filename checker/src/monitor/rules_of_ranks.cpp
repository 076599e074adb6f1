#include "monitor/rules_of_ranks.hpp"

#include <algorithm>
#include <cmath>

#include "monitor/words.hpp"
#include "support/text.hpp"

namespace checker::monitor {

namespace {

// A straggler comes late by so much of a step, and last to so many collectives.
constexpr double kLate = 0.05, kOften = 0.6;
constexpr double kLeastLate = 0.5e-3;  // seconds: below, it is noise
constexpr double kUnequal = 0.05;
constexpr double kSlower = 1.3;
constexpr size_t kFewSteps = 40;      // say nothing of trends
constexpr double kNothingSince = 30;  // seconds that a rank's record ends before the others'

void straggler(const Figures& figures, std::vector<Sentence>& say) {
  if (figures.compared < 10 || figures.step_time <= 0) return;
  for (const auto& rank : figures.ranks) {
    if (rank.lateness < std::max(kLeastLate, kLate * figures.step_time) || rank.last < kOften) {
      continue;
    }
    say.push_back({"straggler",
                   "Rank " + std::to_string(rank.rank) + " arrives " +
                       shown_seconds(rank.lateness) + " late at collectives, and is the last at " +
                       shown_share(rank.last) + " of them. All others wait for it.",
                   "Check what else runs on its CPUs, its GPU's clock, and whether it has more "
                   "work than the others.",
                   rank.lateness / figures.step_time});
  }
}

void alone(const Run& run, const Figures& figures, std::vector<Sentence>& say) {
  if (run.world_size < 2 || figures.steps == 0 || !figures.collectives.empty()) return;
  say.push_back(
      {"nothing_exchanged",
       "The " + std::to_string(run.world_size) +
           " ranks exchange nothing, so each trains its own model.",
       "Use setup(), a DistributedSampler and DistributedDataParallel to train one model together.",
       1});
}

void unequal(const Figures& figures, std::vector<Sentence>& say) {
  if (figures.ranks.size() < 2) return;
  const auto [least, most] =
      std::ranges::minmax_element(figures.ranks, {}, &RankFigures::targets_per_step);
  if (least->targets_per_step <= 0) return;
  const double less = 1 - least->targets_per_step / most->targets_per_step;
  if (less < kUnequal) return;
  say.push_back({"unequal_shares",
                 "Rank " + std::to_string(least->rank) + " gets " + shown_share(less) +
                     " fewer targets a step than rank " + std::to_string(most->rank) +
                     ", and waits for it.",
                 "Give each rank the same --batch-size and an equal share (drop_last).", less});
}

void bad_loss(const Run& run, std::vector<Sentence>& say) {
  const Step* first = nullptr;
  uint32_t where = 0;
  for (const auto& record : run.ranks) {
    // What is not known is nan as well: a loss that broke is infinite, or ends the known ones.
    for (const auto& step : record.steps) {
      if (!std::isinf(step.loss)) continue;
      if (first == nullptr || step.number < first->number) {
        first = &step;
        where = record.rank();
      }
      break;
    }
  }
  if (first == nullptr) return;
  say.push_back({"loss_is_no_number",
                 "The loss became NaN or infinite at step " + std::to_string(first->number) +
                     " (rank " + std::to_string(where) + ").",
                 "Use a smaller learning rate, or fp32 instead of a lower precision. Everything "
                 "after that step is lost.",
                 2});
}

void slower(const Run& run, std::vector<Sentence>& say) {
  double worst = 0, before = 0, after = 0;
  for (const auto& record : run.ranks) {
    const size_t quarter = record.steps.size() / 4;
    if (record.steps.size() < kFewSteps) continue;
    std::vector<double> second, last;
    for (size_t i = 0; i < quarter; ++i) {
      second.push_back(record.steps[quarter + i].duration());  // the first warms up
      last.push_back(record.steps[record.steps.size() - 1 - i].duration());
    }
    const double early = median(std::move(second)), late = median(std::move(last));
    if (early > 0 && late / early > worst) {
      worst = late / early;
      before = early;
      after = late;
    }
  }
  if (worst < kSlower) return;
  say.push_back(
      {"steps_became_slower",
       "Steps became slower: " + shown_seconds(before) + " early, " + shown_seconds(after) +
           " at the end.",
       "Look for another program on the machine, for heat (clocks drop), or for growing memory.",
       1 - 1 / worst});
}

void early_end(const Run& run, const Figures& figures, std::vector<Sentence>& say) {
  std::vector<std::string> killed;
  for (const auto& record : run.ranks) {
    if (!record.ended) killed.push_back(std::to_string(record.rank()));
  }
  if (killed.empty()) return;
  double first = figures.duration;
  for (const auto& record : run.ranks) {
    if (!record.ended) first = std::min(first, record.last);
  }
  const bool one = killed.size() == 1;
  const bool all = killed.size() == run.ranks.size();
  std::string who = (one ? "Rank " : "Ranks ") + join(killed, ", ");
  if (all && run.ranks.size() > 1) who = "All ranks";
  say.push_back({"no_regular_end",
                 who + " did not end normally: the " + (one ? "record stops" : "records stop") +
                     " " + shown_seconds(first) + " after the start.",
                 figures.duration - first > kNothingSince
                     ? "The others ran longer and waited for this rank."
                     : "It is still running, or it was killed. The job's log tells why.",
                 0.05});
}

}  // namespace

void add_sentences_on_ranks(const Run& run, const Figures& figures, std::vector<Sentence>& say) {
  straggler(figures, say);
  alone(run, figures, say);
  unequal(figures, say);
  bad_loss(run, say);
  slower(run, say);
  early_end(run, figures, say);
}

}  // namespace checker::monitor

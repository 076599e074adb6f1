#include "monitor/rules.hpp"

#include <algorithm>
#include <cmath>

#include "monitor/rules_of_ranks.hpp"
#include "monitor/words.hpp"
#include "support/text.hpp"

namespace checker::monitor {

namespace {

using Sentences = std::vector<Sentence>;

// Utilisation below which a GPU counts as idle, and below which it is short of work.
constexpr double kIdle = 0.05, kShortOfWork = 0.6;
// Shares of a step, or of the run, that are worth a word.
constexpr double kData = 0.1, kWaiting = 0.2, kOptimizer = 0.3;
constexpr double kEvaluation = 0.3, kCheckpoints = 0.1, kStart = 0.3, kMostly = 0.6;

// The mean over the ranks that did steps.
template <class Value>
double mean_of(const Figures& figures, Value value) {
  double sum = 0, count = 0;
  for (const auto& rank : figures.ranks) {
    if (rank.step_time <= 0) continue;
    sum += value(rank);
    count += 1;
  }
  return count > 0 ? sum / count : 0;
}

bool is_mostly_replays(const Figures& figures) { return 2 * figures.replays > figures.steps; }

void idle_gpus(const Run& run, const Figures& figures, Sentences& say) {
  size_t known = 0, idle = 0;
  for (const auto& gpu : figures.gpus) {
    if (!gpu.utilisation) continue;
    ++known;
    idle += *gpu.utilisation < kIdle ? 1 : 0;
  }
  if (idle == 0) return;
  const auto share = static_cast<double>(idle) / static_cast<double>(known);
  const auto ranks = run.ranks.size();
  say.push_back({"gpus_idle",
                 std::to_string(idle) + " of " + count_of(known, "GPU") +
                     (idle == 1 ? " idles" : " idle") + ": the run has " + count_of(ranks, "rank") +
                     (run.on_gpus() ? ", and each uses one." : ", which train on the CPU."),
                 run.on_gpus() ? "Start a rank for each GPU, or ask for fewer GPUs."
                               : "Train with --device cuda, or do not ask for GPUs.",
                 share});
}

void short_of_work(const Run& run, const Figures& figures, Sentences& say) {
  double sum = 0, used = 0;
  for (const auto& gpu : figures.gpus) {
    if (!gpu.utilisation || *gpu.utilisation < kIdle) continue;
    sum += *gpu.utilisation;
    used += 1;
  }
  if (used == 0 || sum / used >= kShortOfWork || !run.on_gpus()) return;
  // Of what a graph repeats the GPU's own times are known: see data().
  if (is_mostly_replays(figures)) return;
  say.push_back({"gpus_short_of_work",
                 "The GPUs in use are busy " + shown_share(sum / used) +
                     " of the time. The rest of the time they wait for the host.",
                 "A larger --batch-size gives them more work per launch. --fast turns most steps "
                 "into one CUDA graph, which saves host time.",
                 0.9 * (1 - sum / used)});
}

// What the first batches of epochs have to do with the time that steps spend on data.
struct FirstBatches {
  double share = 0;           ///< of that time
  size_t steps_an_epoch = 0;  ///< on average
};

// An evaluation ends an epoch.
FirstBatches first_batches(const RankRecord& record) {
  std::vector<double> evaluations;
  for (const auto& span : record.spans) {
    if (span.phase == Phase::evaluation) evaluations.push_back(span.begin);
  }
  std::ranges::sort(evaluations);
  double first = 0, all = 0, before = -1;
  size_t epochs = 0;
  for (const auto& step : record.steps) {
    const auto evaluation = std::ranges::lower_bound(evaluations, before);
    const bool begins = evaluation != evaluations.end() && *evaluation < step.begin;
    all += step.phases[0];
    if (before < 0 || begins) {
      first += step.phases[0];
      ++epochs;
    }
    before = step.begin;
  }
  if (all <= 0) return {};
  return {first / all, record.steps.size() / epochs};
}

void data(const Run& run, const Figures& figures, Sentences& say) {
  const double share = mean_of(figures, [](const auto& rank) { return rank.shares[0]; });
  if (share < kData) return;
  const auto what = std::string("The loader makes the ") + (run.on_gpus() ? "GPU" : "rank") +
                    " wait " + shown_share(share) + " of a step";
  const auto first = first_batches(run.ranks.front());
  if (first.share > kMostly) {
    say.push_back({"waits_for_data", what + ", mostly for the first batch of an epoch.",
                   "An epoch has " + count_of(first.steps_an_epoch, "step") +
                       ". Nothing is fetched ahead while the ranks evaluate. In a longer epoch, or "
                       "with smaller batches, this matters less.",
                   share});
    return;
  }
  say.push_back(
      {"waits_for_data", what + ".",
       "Use loader workers (DataLoaderOptions::workers), and keep the data on a fast disk.",
       share});
}

void waiting(const Figures& figures, Sentences& say) {
  const double share = mean_of(figures, [](const auto& rank) { return rank.waiting; });
  if (share < kWaiting) return;
  say.push_back({"waits_for_collectives",
                 "The ranks spend " + shown_share(share) + " of a step waiting for collectives.",
                 "A larger --batch-size means fewer exchanges. A faster network or fewer ranks "
                 "make each one shorter.",
                 share});
}

void optimizer(const Figures& figures, Sentences& say) {
  const double share = mean_of(figures, [](const auto& rank) { return rank.shares[3]; });
  if (share < kOptimizer) return;
  say.push_back({"slow_optimizer", "The optimizer takes " + shown_share(share) + " of a step.",
                 "Its time does not depend on the batch, so a larger --batch-size hides it.",
                 share - kOptimizer / 2});
}

void outside_steps(const Figures& figures, Sentences& say) {
  if (figures.duration <= 0) return;
  const auto share_of = [&](auto value) { return mean_of(figures, value) / figures.duration; };
  const double evaluation = share_of([](const auto& rank) { return rank.evaluation; });
  if (evaluation >= kEvaluation) {
    say.push_back({"long_evaluation",
                   "Evaluation takes " + shown_share(evaluation) + " of the run.",
                   "Share it among the ranks, or evaluate less often.", evaluation});
  }
  const double checkpoints = share_of([](const auto& rank) { return rank.checkpoints; });
  if (checkpoints >= kCheckpoints) {
    say.push_back({"many_checkpoints",
                   "Checkpoints take " + shown_share(checkpoints) + " of the run.",
                   "Save less often: a larger --checkpoint-every.", checkpoints});
  }
  const double start = share_of([](const auto& rank) { return rank.first_step; });
  if (start >= kStart) {
    say.push_back({"long_start",
                   "The first step began after " + shown_seconds(start * figures.duration) + ", " +
                       shown_share(start) + " of the run.",
                   "In a longer run this matters less. The speed figures exclude it.", start / 2});
  }
}

void memory(const Figures& figures, Sentences& say) {
  for (const auto& node : figures.nodes) {
    if (node.total <= 0 || node.least_available >= 0.05 * node.total) continue;
    say.push_back({"memory_nearly_full",
                   "The memory of " + node.host +
                       " was almost full: " + shown_bytes(node.least_available) + " of " +
                       shown_bytes(node.total) + " were left.",
                   "Use fewer ranks on a node or a smaller --batch-size. When memory runs out, the "
                   "kernel kills processes.",
                   0.5});
  }
  for (const auto& gpu : figures.gpus) {
    if (gpu.total <= 0 || gpu.peak < 0.95 * gpu.total) continue;
    say.push_back({"gpu_memory_nearly_full",
                   "GPU " + std::to_string(gpu.number) + " of " + gpu.host + " used " +
                       shown_bytes(gpu.peak) + " of its " + shown_bytes(gpu.total) + ".",
                   "A smaller --batch-size leaves room for steps that need more.", 0.4});
  }
}

// Where no CPU is free and others than the ranks have many of them.
void other_programs(const Run& run, const Figures& figures, Sentences& say) {
  constexpr double kAllBusy = 0.9, kMany = 0.25;
  for (const auto& node : figures.nodes) {
    double ours = 0;
    for (size_t i = 0; i < run.ranks.size(); ++i) {
      if (run.ranks[i].host() == node.host) ours += figures.ranks[i].cpus;
    }
    const double others = node.cpus * node.busy - ours;
    if (node.busy < kAllBusy || others < kMany * node.cpus) continue;
    say.push_back({"other_programs",
                   "Other programs keep " + fixed(others, 1) + " of the " + fixed(node.cpus, 0) +
                       " CPUs of " + node.host + " busy, so none is free.",
                   "Run when the machine is idle, or ask Slurm for your own CPUs (--cpus-per-task, "
                   "--exclusive).",
                   others / node.cpus});
  }
}

// Since its least value the validation loss has risen, more than once, above the training loss.
void overfitting(const Figures& figures, Sentences& say) {
  constexpr double kRisen = 1.01;
  const EvaluationFigures *least = nullptr, *last = nullptr;
  size_t since = 0;
  for (const auto& one : figures.evaluations) {
    if (one.split != "validation") continue;
    last = &one;
    ++since;
    if (least && least->loss <= one.loss) continue;
    least = last;
    since = 0;
  }
  if (since < 2 || last->loss < kRisen * least->loss) return;
  if (!figures.last_loss || *figures.last_loss >= last->loss) return;
  say.push_back({"overfitting",
                 "The validation loss rises: it was " + fixed(least->loss, 3) + " after step " +
                     fixed(least->step, 0) + " and is " + fixed(last->loss, 3) +
                     " at the end; the training loss is " + fixed(*figures.last_loss, 3) + ".",
                 "The model overfits. More data or more dropout help; more epochs do not. "
                 "model-best.safetensors holds the best model.",
                 0.3});
}

void nothing(const Figures& figures, Sentences& say) {
  if (!say.empty()) return;
  if (figures.steps == 0) {
    say.push_back({"no_steps", "No step was recorded, so there are no times.",
                   "Train for longer, for example with --max-steps 100.", 0});
    return;
  }
  if (is_mostly_replays(figures)) {
    say.push_back(
        {"nothing_stands_out",
         "Nothing stands out: the GPU computes one step after the other, as a CUDA graph.",
         "Only the model's own arithmetic is left to improve.", 0});
    return;
  }
  const double share =
      mean_of(figures, [](const auto& rank) { return rank.shares[1] + rank.shares[2]; });
  say.push_back(
      {"nothing_stands_out",
       "Nothing stands out: forward and backward take " + shown_share(share) + " of a step.",
       "Only the model's own arithmetic is left to improve.", 0});
}

}  // namespace

std::vector<Sentence> limits_of(const Run& run, const Figures& figures) {
  Sentences say;
  idle_gpus(run, figures, say);
  short_of_work(run, figures, say);
  data(run, figures, say);
  waiting(figures, say);
  optimizer(figures, say);
  outside_steps(figures, say);
  memory(figures, say);
  other_programs(run, figures, say);
  overfitting(figures, say);
  add_sentences_on_ranks(run, figures, say);
  nothing(figures, say);
  std::ranges::stable_sort(say, std::ranges::greater(), &Sentence::weight);
  return say;
}

}  // namespace checker::monitor

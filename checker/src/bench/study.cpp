#include "bench/study.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "course/mapping.hpp"
#include "support/error.hpp"

namespace checker::bench {

namespace {

constexpr int kMostBases = 8;

// The shortest text that reads back as this number.
std::string exactly(double value) {
  std::string text(32, ' ');
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  text.resize(static_cast<size_t>(end - text.data()));
  return text;
}

template <class Number>
void take(const YAML::Node& root, const char* key, const std::filesystem::path& file,
          Number& number) {
  if (number != 0 || !root[key]) return;  // what was read first counts
  try {
    number = root[key].as<Number>();
  } catch (const YAML::Exception&) {
    fail(file, root[key].Mark(), std::string(key) + " must be a number.");
  }
}

// A run that is shorter than the configuration's has a warm-up that is shorter alike.
int64_t warm_up_of(const StudyBase& base, int64_t steps, size_t times) {
  if (base.warm_up_steps == 0) return 0;
  const double share = base.max_steps > 0
                           ? static_cast<double>(steps) / static_cast<double>(base.max_steps)
                           : 1.0 / static_cast<double>(times);
  return std::max<int64_t>(1, std::llround(static_cast<double>(base.warm_up_steps) * share));
}

Trial trial_of(const StudyBase& base, const StudyPlan& plan, size_t times, bool scaled) {
  const auto largest = base.batch_size * static_cast<int64_t>(plan.largest);
  const auto samples = (plan.samples + largest - 1) / largest * largest;
  // The greatest power of two of ranks that there may be.
  size_t ranks = 1;
  while (ranks < times && 2 * ranks <= plan.most_ranks) ranks *= 2;
  Trial trial{.times = times, .ranks = ranks, .scaled = scaled};
  trial.batch_size = base.batch_size * static_cast<int64_t>(times / ranks);
  trial.steps = samples / trial.samples_a_step();
  trial.learning_rate = base.learning_rate * (scaled ? std::sqrt(static_cast<double>(times)) : 1);
  trial.warm_up_steps = warm_up_of(base, trial.steps, times);
  return trial;
}

}  // namespace

StudyBase read_study_base(const std::filesystem::path& folder, const std::string& name) {
  StudyBase base{.name = name};
  std::string next = name;
  for (int depth = 0; !next.empty() && depth < kMostBases; ++depth) {
    const auto file = folder / (next + ".yaml");
    const auto root = read_yaml(file);
    take(root, "batch_size", file, base.batch_size);
    take(root, "learning_rate", file, base.learning_rate);
    take(root, "warm_up_steps", file, base.warm_up_steps);
    take(root, "max_steps", file, base.max_steps);
    next = root["base"] ? root["base"].as<std::string>() : "";
  }
  if (base.batch_size < 1 || base.learning_rate <= 0) {
    throw Error((folder / (name + ".yaml")).string() +
                " sets no batch_size or no learning_rate, which the study needs. Fix: --config "
                "with another one of " +
                folder.string() + ".");
  }
  return base;
}

std::vector<Trial> study_trials(const StudyBase& base, const StudyPlan& plan) {
  std::vector<Trial> trials;
  for (size_t times = 1; times <= plan.largest; times *= 2) {
    trials.push_back(trial_of(base, plan, times, /*scaled=*/true));
    if (times > 1) trials.push_back(trial_of(base, plan, times, /*scaled=*/false));
  }
  return trials;
}

std::string config_of(const Trial& trial, const StudyBase& base) {
  // max_steps ends the run, whatever an epoch has.
  std::string text = "base: " + base.name + "\nepochs: 1000000\n";
  text += "max_steps: " + std::to_string(trial.steps) + "\n";
  text += "batch_size: " + std::to_string(trial.batch_size) + "\n";
  text += "learning_rate: " +
          exactly(trial.learning_rate / std::sqrt(static_cast<double>(trial.ranks))) + "\n";
  if (base.warm_up_steps > 0) {
    text += "warm_up_steps: " + std::to_string(trial.warm_up_steps) + "\n";
  }
  return text;
}

double TrialResult::mean_loss() const {
  double sum = 0;
  for (const auto& run : runs) sum += run.loss;
  return sum / static_cast<double>(runs.size());
}

double TrialResult::least_loss() const {
  return std::ranges::min_element(runs, {}, &TrialRun::loss)->loss;
}

double TrialResult::most_loss() const {
  return std::ranges::max_element(runs, {}, &TrialRun::loss)->loss;
}

double TrialResult::mean_seconds() const {
  double sum = 0;
  for (const auto& run : runs) sum += run.seconds;
  return sum / static_cast<double>(runs.size());
}

}  // namespace checker::bench

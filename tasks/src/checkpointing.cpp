#include "tasks/checkpointing.hpp"

#include <fmt/format.h>
#include <torch/types.h>

#include <cstdio>
#include <optional>

#include "distributed_utils/checkpoint.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/print.hpp"
#include "distributed_utils/stop_signal.hpp"
#include "phases.hpp"

namespace tasks {

namespace du = distributed_utils;

namespace {

// Where the best score's metrics stand among the scalars.
std::string metric_name(size_t number) { return fmt::format("best_metric_{}", number); }
std::string metric_value(size_t number) { return fmt::format("best_metric_{}_value", number); }

// Of a GradScaler's state, whole or real, under the same names.
std::string scaler_name(const std::string& name) { return "grad_scaler." + name; }

void put_state(const du::GradScaler& scaler, du::Scalars& into) {
  for (const auto& [name, value] : scaler.state_dict()) {
    if (value.is_floating_point()) {
      into[scaler_name(name)] = value.item<double>();
    } else {
      into[scaler_name(name)] = value.item<int64_t>();
    }
  }
}

void take_state(const du::Checkpoint& checkpoint, du::GradScaler& scaler) {
  du::StateDict state = scaler.state_dict();
  for (auto& [name, value] : state) {
    if (!checkpoint.contains(scaler_name(name))) return;
    value = value.is_floating_point()
                ? torch::scalar_tensor(checkpoint.get(scaler_name(name), 0.0), value.options())
                : torch::scalar_tensor(checkpoint.get(scaler_name(name), 0), value.options());
  }
  scaler.load_state_dict(state);
}

Score best_of(const du::Checkpoint& checkpoint, const Score& otherwise) {
  if (!checkpoint) return otherwise;
  std::vector<std::pair<std::string, double>> metrics;
  for (size_t i = 0; checkpoint.contains(metric_name(i)); ++i) {
    metrics.emplace_back(checkpoint.get(metric_name(i), std::string()),
                         checkpoint.get(metric_value(i), 0.0));
  }
  return Score(checkpoint.get("best_loss", double(otherwise)), std::move(metrics));
}

}  // namespace

struct Checkpointing::State {
  explicit State(const Options& given)
      : options(given), checkpoints(given.output / "checkpoints") {}

  const Options& options;
  du::Checkpoints checkpoints;
  du::Checkpoint start;
  std::optional<du::StopSignal> stop;
  torch::nn::Module* model = nullptr;
  torch::optim::Optimizer* optimizer = nullptr;
  Progress* progress = nullptr;
  Score* best = nullptr;
  du::GradScaler* scaler = nullptr;  // null: the trainer has none
  int64_t epoch = -1;                // that runs, from 0
  int64_t position = 0;              // samples that all ranks together have taken of it
  int64_t samples = 0;               // in the training split

  void check_is_same_run() const;
  void save(const torch::Tensor& totals);
};

// What decides the order of samples must be what it was.
void Checkpointing::State::check_is_same_run() const {
  const auto seed = static_cast<int64_t>(options.seed);
  if (const auto theirs = start.get("seed", seed); theirs != seed) {
    throw Error(
        fmt::format("--resume: the run in {} had the seed {}, this one has {}; use --seed {}",
                    options.output.string(), theirs, seed, theirs));
  }
  if (const auto theirs = start.get("samples", samples); theirs != samples) {
    throw Error(fmt::format(
        "--resume: the run in {} had {} training samples, this one has {}; use the same data",
        options.output.string(), theirs, samples));
  }
}

void Checkpointing::State::save(const torch::Tensor& totals) {
  phases::checkpoint_begins();
  du::Scalars scalars{{"epoch", epoch},
                      {"position", position},
                      {"best_loss", double(*best)},
                      {"seed", static_cast<int64_t>(options.seed)},
                      {"samples", samples}};
  for (size_t i = 0; i < best->metrics().size(); ++i) {
    const auto& [name, value] = best->metrics()[i];
    scalars[metric_name(i)] = name;
    scalars[metric_value(i)] = value;
  }
  if (scaler != nullptr) put_state(*scaler, scalars);
  checkpoints.save(progress->steps(), *model, *optimizer, scalars, {{"totals", totals}});
  phases::checkpoint_ends();
}

Checkpointing::Checkpointing(const Options& options) : state_(std::make_unique<State>(options)) {
  if (!options.resume) return;
  state_->start = state_->checkpoints.load_latest();
  if (state_->start) {
    du::print0("resumed after step {}", state_->start.step());
  } else {
    du::print0("no checkpoint yet: this run starts from the beginning");
  }
}

Checkpointing::~Checkpointing() = default;

std::vector<std::vector<size_t>> Checkpointing::bucket_indices() const {
  return state_->start.bucket_indices();
}

int64_t Checkpointing::restore(torch::nn::Module& model, torch::optim::Optimizer& optimizer,
                               Schedule& schedule, du::DistributedSampler& sampler,
                               Progress& progress, Score& best) {
  State& state = *state_;
  state.model = &model;
  state.optimizer = &optimizer;
  state.progress = &progress;
  state.best = &best;
  state.samples = progress.train_size();
  state.check_is_same_run();
  if (state.options.checkpoint_every > 0) state.stop.emplace();
  state.position = state.start.get("position", 0);
  best = best_of(state.start, best);
  progress.resume(state.start.step());
  sampler.skip(static_cast<size_t>(state.position));
  state.start.restore(model, optimizer);
  schedule.restore(state.start.step());  // after the optimizer, which brings its own learning rates
  const int64_t epoch = state.start.get("epoch", 0);
  state.epoch = epoch - 1;
  return epoch;
}

void Checkpointing::keep(du::GradScaler& scaler) {
  state_->scaler = &scaler;
  if (state_->start) take_state(state_->start, scaler);
}

torch::Tensor Checkpointing::begin_epoch(const torch::Tensor& no_totals) {
  State& state = *state_;
  auto totals = no_totals.clone();
  for (const auto& former : state.start.rank_states()) {
    totals += former.at("totals").to(totals.device());
  }
  if (!state.start) state.position = 0;
  state.start = {};
  ++state.epoch;
  return totals;
}

void Checkpointing::step(const torch::Tensor& totals) {
  State& state = *state_;
  const int64_t every = state.options.checkpoint_every;
  if (every == 0) return;
  state.position += state.options.batch_size * du::get_world_size();
  const int64_t step = state.progress->steps();
  if (state.stop->after_step()) {
    state.save(totals);
    throw Stopped(
        fmt::format("stopped after step {} and saved; --resume continues from there", step));
  }
  if (step % every != 0) return;
  try {
    state.save(totals);
  } catch (const du::Error& error) {  // on all ranks alike
    if (du::get_rank() == 0) fmt::println(stderr, "warning: no checkpoint: {}", error.what());
  }
}

}  // namespace tasks

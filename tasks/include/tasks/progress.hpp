#pragma once
/// The progress bar of a training run: step, loss, tokens (targets) per second, time left.
#include <chrono>
#include <cstdint>

#include "tasks/options.hpp"
#include "tasks/step_graph.hpp"
#include "tasks/task.hpp"

namespace tasks {

/// Counts optimizer steps and draws a bar on stderr, only if that is a terminal and only on rank 0
/// of the default process group. Reads a loss from the device only when it redraws (a few times a
/// second), so that it never makes a GPU wait at every step. The bar is gone after each epoch's
/// last step, so that what a trainer then prints has the line to itself. Where there is no bar or
/// more than one rank, rank 0 first says how many ranks there are, on stderr.
class Progress {
 public:
  /// train_size: samples of the training split, of all ranks together. Throws Error if they do not
  /// fill one batch per rank.
  Progress(const Options& options, size_t train_size);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Takes a training step, on a batch that it moves to its device itself, and returns its loss.
  /// With --fast on a GPU most steps are a CUDA graph's: see step_graph.hpp.
  Loss take_step(const Batch& batch, const StepGraph::Step& step) {
    return graph_.take(batch, step);
  }
  /// To be called after every optimizer step. False once max_steps are done: leave the loop.
  bool step(const Loss& loss);
  /// Tells the checker and the monitor what an epoch came to. Every rank calls it; it prints
  /// nothing.
  void report(const Score& training, const Score& validation);
  /// The same of the final test.
  void report(const Score& test);
  /// Goes on after so many steps, which an earlier run did.
  void resume(int64_t steps);
  /// True once max_steps are done: start no further epoch.
  bool finished() const;

  /// Optimizer steps of an epoch and of the whole run, and those done.
  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  int64_t total_steps() const { return total_steps_; }
  int64_t steps() const { return steps_; }
  /// The epoch that this process trains in, from 0: what a data set varies its samples by. A loader
  /// that fetches ahead does not fetch the next epoch's before this one is over. Any thread may
  /// ask.
  static int64_t current_epoch();
  /// Samples of the training split.
  int64_t train_size() const { return train_size_; }

 private:
  using Clock = std::chrono::steady_clock;

  void say_the_plan(int64_t batch_size) const;
  void count(int64_t steps);
  void measure(Clock::time_point now, int64_t targets);
  void draw(const Loss& loss);
  void clear();

  StepGraph graph_;
  int64_t max_steps_;
  int64_t world_size_;
  int64_t train_size_;
  int64_t steps_per_epoch_;
  int64_t total_steps_;
  int64_t steps_ = 0;
  // Speed is measured between the steps of one epoch, so that evaluation does not count.
  int64_t measured_steps_ = 0;
  int64_t measured_targets_ = 0;
  std::chrono::duration<double> measured_{};
  Clock::time_point last_;
  Clock::time_point drawn_;
  bool draws_;
  bool visible_ = false;
};

}  // namespace tasks

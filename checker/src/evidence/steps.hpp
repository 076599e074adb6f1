#pragma once
/// The steps of one rank's model. Several optimizers may share its parameters, and several batches
/// may lead to one step.
#include <vector>

#include "evidence/run.hpp"

namespace checker {

/// Follows one rank's log, in its order, and adds steps and parameters to the rank.
class StepFinder {
 public:
  /// losses: those seen so far; a step tells them that they led to it.
  StepFinder(RankSeen& rank, std::vector<BatchSeen>& losses) : rank_(rank), losses_(losses) {}

  void model(std::vector<TensorSeen> tensors) { models_.push_back(std::move(tensors)); }
  /// The next optimizer holds these instead of parameters of a model.
  void pieces(std::vector<TensorSeen> tensors) { pieces_ = std::move(tensors); }
  void stepping(const Event& event);
  void learning_rates(const Event& event) { learning_rates_ = event.numbers<double>(); }
  void values(const Event& event);
  void gradients(const Event& event, size_t place);
  /// Of a rank that took no step the last model is the one that counts.
  void end();

 private:
  void begin_training(uint64_t model);
  void step_pieces(uint64_t model);
  void choose_model(const std::vector<double>& pieces);
  bool goes_on() const;
  void leads_to(size_t step);
  std::vector<double> in_doubles(const Event& event);

  RankSeen& rank_;
  std::vector<BatchSeen>& losses_;
  std::vector<std::vector<TensorSeen>> models_;  // as make_model returned them
  std::vector<TensorSeen> pieces_;               // of the optimizer that is about to step
  uint64_t trained_ = 0;                         // the number of the one that is trained
  std::vector<bool> stepped_;                    // by the optimizer that is about to step
  bool foreign_ = false;                         // it holds parameters of something else
  bool more_of_a_step_ = false;
  size_t used_ = 0;  // losses that come before the last step
  std::vector<double> learning_rates_;
};

}  // namespace checker

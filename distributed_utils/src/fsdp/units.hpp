#pragma once
/// All units of a model, and when each of them is gathered, freed and reduced.
#include <torch/csrc/autograd/function.h>

#include <memory>

#include "fsdp/unit.hpp"

namespace distributed_utils::detail {

/// What all ranks must do in the same order depends on nothing but the calls of units: gathers
/// ahead go by the order of the last forward, and a unit is reduced when the inputs of all its
/// calls have their gradients, though some of its parameters have none.
class Units : public std::enable_shared_from_this<Units> {
 public:
  Units(std::vector<UnitContents> contents, Sharing sharing,
        const FullyShardedDataParallelOptions& options);

  /// Follows the blocks' calls, as long as this object lives. Once.
  void follow_blocks();

  const std::vector<std::unique_ptr<Unit>>& all() const { return units_; }
  const Sharing& sharing() const { return sharing_; }

  /// False while all parameters are whole, and nothing is to be done.
  bool is_active() const { return whole_ == 0; }
  void begin_forward(bool synchronizes);
  /// outputs: none without gradients. Called while all are whole, too.
  void end_forward(const std::vector<at::Tensor>& outputs);
  void leave_forward() { in_forward_ = false; }

  void start_gathers();
  void free_all();
  void begin_whole();
  void end_whole();

 private:
  /// A call of a unit, until its backward is over.
  struct Call {
    Unit& unit;
    size_t position;  // among the forward's calls
    uint64_t forward;
    std::weak_ptr<torch::autograd::Node> made_output = {};
    std::weak_ptr<Call> next = {};  // whose input is this one's output
    uint64_t over_in = 0;           // which backward has last been through it
  };

  // In units_forward.cpp.
  void shards_may_have_changed();
  void before_block(Unit& unit);
  at::Tensor watch_input(Unit& unit, const at::Tensor& input);
  at::Tensor after_block(Unit& unit, const at::Tensor& output);
  void prefetch(const std::vector<Unit*>& order, size_t position, int step, int count);

  // In units_backward.cpp.
  void begin_backward();
  void before_backward_of(Call& call);
  void after_backward_of(Call& call);
  void reduce(Unit& unit);
  void finish_reduction();
  void reduce_the_rest();
  void end_backward();
  void forget_backward();

  Sharing sharing_;
  bool frees_after_forward_;
  int forward_prefetch_, backward_prefetch_;
  std::vector<std::unique_ptr<Unit>> units_;  // the first is what the others leave over

  bool in_forward_ = false, in_backward_ = false;
  bool trains_ = false;  // the last forward began with gradients
  bool synchronizes_ = true;
  bool keeps_gathered_ = false;  // after start_gathers(), until the next forward
  int whole_ = 0;                // WholeParameters alive
  uint64_t forwards_ = 0, backwards_ = 0;

  std::vector<Unit*> calls_;                    // of this forward, or the last
  std::vector<Unit*> expected_;                 // calls of the next one
  std::vector<std::shared_ptr<Call>> entered_;  // calls whose forward has begun and not ended
  std::shared_ptr<Call> left_;                  // the last one that has ended, with gradients
  std::vector<Unit*> used_;    // by forwards that backward() has not been through, by first use
  bool used_is_over_ = false;  // by backward(): the next forward begins again

  Unit* reducing_ = nullptr;  // at most one at a time
};

}  // namespace distributed_utils::detail

#pragma once
/// A part of the model that is gathered, freed and reduced as one.
#include <memory>
#include <string>

#include "distributed_utils/observer.hpp"
#include "fsdp/gather.hpp"
#include "fsdp/reduction.hpp"
#include "fsdp/unit_contents.hpp"

namespace distributed_utils::detail {

class Unit {
 public:
  Unit(UnitContents contents, const Sharing& sharing);

  const std::string& name() const { return name_; }
  const std::shared_ptr<Block>& block() const { return block_; }
  std::vector<ShardedParameter>& parameters();

  void start_gather();
  void gather();
  void free();

  /// Number i of the parameters has its gradient of this backward().
  void arrived(size_t i);
  /// A call of the unit is on its way back, or has come back, which frozen parameters wait for.
  void call_opened() { ++open_calls_; }
  void call_closed() { --open_calls_; }
  /// True if backward() needs none of its parameters any more.
  bool is_done() const;
  bool has_trained() const { return trained_ > 0; }
  bool has_whole_gradients();
  void keep_gradients();
  /// From now on, gradients count as not arrived: of another backward() within this one.
  void expect_gradients();

  void start_reduction();
  void finish_reduction();

  void end_backward();

  bool is_called = false;   ///< since the last backward()
  bool is_ready = false;    ///< all gradients are there, and wait for their turn
  bool is_reduced = false;  ///< in this backward(), in its turn

 private:
  void tell(UnitEvent event) const;

  std::string name_;
  std::shared_ptr<Block> block_;
  const Sharing& sharing_;
  std::vector<ShardedParameter> none_;
  std::unique_ptr<Gather> gather_;        // null: it has no parameters
  std::unique_ptr<Reduction> reduction_;  // null: none is trained
  size_t trained_ = 0, frozen_ = 0;
  std::vector<bool> has_arrived_;
  size_t arrivals_ = 0;
  int64_t open_calls_ = 0;
};

}  // namespace distributed_utils::detail

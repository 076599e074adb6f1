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

  bool has_trained() const { return reduction_ != nullptr; }
  bool has_whole_gradients();
  void keep_gradients();

  void start_reduction();
  void finish_reduction();

  bool is_used = false;     ///< by forwards that backward() has not been through
  size_t calls = 0;         ///< in these, with gradients
  size_t calls_over = 0;    ///< of them, in this backward()
  bool is_reduced = false;  ///< in this backward()

 private:
  void tell(UnitEvent event) const;

  std::string name_;
  std::shared_ptr<Block> block_;
  const Sharing& sharing_;
  std::vector<ShardedParameter> none_;
  std::unique_ptr<Gather> gather_;        // null: it has no parameters
  std::unique_ptr<Reduction> reduction_;  // null: none is trained
};

}  // namespace distributed_utils::detail

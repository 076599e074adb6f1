#pragma once
/// Which parameters belong to which unit.
#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "distributed_utils/block.hpp"

namespace distributed_utils::detail {

struct UnitContents {
  std::string name;              ///< within the model
  std::shared_ptr<Block> block;  ///< null: what the others leave over
  std::vector<std::pair<std::string, at::Tensor>> parameters = {};
};

/// The leftover first, then a unit for each block. A parameter belongs to the innermost unit that
/// holds all modules that have it. Throws Error for blocks that are not the module's or are named
/// twice, and for parameters that cannot be cut or travel together.
std::vector<UnitContents> unit_contents(const std::shared_ptr<torch::nn::Module>& module,
                                        const std::vector<std::shared_ptr<Block>>& blocks);

}  // namespace distributed_utils::detail

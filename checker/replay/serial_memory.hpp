#pragma once
/// What one process needs to train the whole model, in bytes of tensors.
#include <nlohmann/json_fwd.hpp>

#include "evidence/run.hpp"
#include "tasks/task.hpp"

namespace replay {

/// parameters, and state: of the optimizer. block: the largest of the model's blocks, rest: what
/// belongs to none, in parameters; no blocks: block is null. forward: what a batch and its forward
/// pass keep for backward(), forward_most: what they need on the way. Null where no rank trained.
nlohmann::json serial_memory(const tasks::Task& task, const std::vector<checker::RankSeen>& ranks);

}  // namespace replay

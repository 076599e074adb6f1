#include "serial_memory.hpp"

#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "instrumentation/memory.hpp"

namespace replay {

using nlohmann::json;

namespace {

uint64_t bytes_of(const torch::nn::Module& module) {
  uint64_t bytes = 0;
  for (const auto& parameter : module.parameters()) bytes += parameter.nbytes();
  return bytes;
}

std::vector<size_t> first_batch(const std::vector<checker::RankSeen>& ranks) {
  for (const auto& rank : ranks) {
    for (const auto* pass : rank.trainings()) {
      if (!pass->batches.empty()) {
        return {pass->batches[0].ids.begin(), pass->batches[0].ids.end()};
      }
    }
  }
  return {};
}

}  // namespace

json serial_memory(const tasks::Task& task, const std::vector<checker::RankSeen>& ranks) {
  const auto ids = first_batch(ranks);
  auto dataset = task.dataset("train");
  for (const auto id : ids) {
    if (id >= *dataset.size()) return nullptr;
  }
  if (ids.empty()) return nullptr;
  namespace memory = instrumentation::memory;
  memory::count();
  const auto model = task.make_model();
  json result = {{"parameters", bytes_of(*model)}, {"rest", bytes_of(*model)}, {"block", nullptr}};
  uint64_t largest = 0, in_blocks = 0;
  for (const auto& block : model->blocks()) {
    largest = std::max(largest, bytes_of(*block));
    in_blocks += bytes_of(*block);
  }
  if (largest > 0) result["block"] = largest;
  result["rest"] = bytes_of(*model) - in_blocks;
  const uint64_t before = memory::look().live;
  const auto batch = dataset.get_batch(ids);
  const auto loss = task.loss(model->forward(batch.input), batch.target);
  const auto forward = memory::look();
  result["forward"] = forward.live - before;
  result["forward_most"] = forward.most - before;
  loss.mean().backward();
  const auto optimizer = task.make_optimizer(model->parameters());
  const uint64_t without_state = memory::look().live;
  optimizer->step();
  result["state"] = memory::look().live - without_state;
  return result;
}

}  // namespace replay

#include "checkpoint/generator_state.hpp"

#include <ATen/Context.h>

#include <mutex>
#include <utility>
#include <vector>

namespace distributed_utils::detail {
namespace {

std::vector<std::pair<const char*, at::Generator>> generators(const torch::nn::Module& model) {
  auto& context = at::globalContext();
  std::vector<std::pair<const char*, at::Generator>> result = {
      {"generator.cpu", context.defaultGenerator(c10::kCPU)}};
  const auto parameters = model.parameters();
  if (!parameters.empty() && parameters.front().is_cuda()) {
    result.emplace_back("generator.cuda", context.defaultGenerator(parameters.front().device()));
  }
  return result;
}

}  // namespace

StateDict generator_states(const torch::nn::Module& model) {
  StateDict states;
  for (auto& [name, generator] : generators(model)) {
    const std::lock_guard lock(generator.mutex());
    states.emplace(name, generator.get_state());
  }
  return states;
}

void restore_generators(const StateDict& states, const torch::nn::Module& model, uint64_t seed) {
  for (auto& [name, generator] : generators(model)) {
    const std::lock_guard lock(generator.mutex());
    const auto found = states.find(name);
    if (found == states.end()) {
      generator.set_current_seed(seed);
    } else {
      generator.set_state(found->second);
    }
  }
}

}  // namespace distributed_utils::detail

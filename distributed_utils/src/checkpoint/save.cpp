#include "distributed_utils/save.hpp"

#include <fmt/format.h>

#include "checkpoint/restore.hpp"
#include "distributed_utils/ddp.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/observer.hpp"

namespace distributed_utils {

StateDict state_dict(const torch::nn::Module& module) {
  if (const auto* ddp = dynamic_cast<const DistributedDataParallelBase*>(&module)) {
    return state_dict(*ddp->wrapped_module());
  }
  StateDict state;
  for (const auto& item : module.named_parameters())
    state.emplace(item.key(), item.value().detach());
  for (const auto& item : module.named_buffers()) state.emplace(item.key(), item.value().detach());
  return state;
}

void save0(const torch::nn::Module& module, const std::filesystem::path& path, const Group& group) {
  const bool writes = get_rank(group) == 0;
  if (Observer* const watching = observer()) watching->save0_called(writes);
  if (writes) save_file(state_dict(module), path);
}

std::function<void()> detail::prepare_load(torch::nn::Module& module, StateDict from,
                                           const std::filesystem::path& path) {
  StateDict to = state_dict(module);
  for (const auto& [name, tensor] : to) {
    const auto found = from.find(name);
    if (found == from.end()) {
      throw Error(
          fmt::format("{}: '{}' is not in it, but the model has it. Mend: load a file that was "
                      "saved from the same model and configuration.",
                      path.string(), name));
    }
    if (found->second.sizes() != tensor.sizes()) {
      throw Error(fmt::format(
          "{}: '{}' has shape {}, the model's has {}. Mend: use the configuration it "
          "was trained with.",
          path.string(), name, c10::str(found->second.sizes()), c10::str(tensor.sizes())));
    }
  }
  for (const auto& [name, tensor] : from) {
    if (!to.contains(name)) {
      throw Error(
          fmt::format("{}: it holds '{}', which the model does not have. Mend: load a file that "
                      "was saved from the same model and configuration.",
                      path.string(), name));
    }
  }
  return [to = std::move(to), from = std::move(from)] {
    const torch::NoGradGuard no_grad;
    // The tensors share the module's memory, so copying into them is loading.
    for (const auto& [name, tensor] : to) tensor.copy_(from.at(name));
  };
}

void load(torch::nn::Module& module, const std::filesystem::path& path) {
  detail::prepare_load(module, load_file(path), path)();
}

}  // namespace distributed_utils

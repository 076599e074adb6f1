#include "distributed_utils/save.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/pieces.hpp"
#include "checkpoint/restore.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/observer.hpp"
#include "distributed_utils/placement.hpp"
#include "distributed_utils/sharded_model.hpp"

namespace distributed_utils {

StateDict state_dict(const torch::nn::Module& module) {
  StateDict state;
  for (const auto& piece : placements(module)) state.emplace(piece.name, piece.tensor.detach());
  return state;
}

void save0(const torch::nn::Module& module, const std::filesystem::path& path, const Group& group) {
  const bool writes = get_rank(group) == 0;
  if (Observer* const watching = observer()) watching->save0_called(writes);
  const auto pieces = placements(module);
  if (!std::ranges::all_of(pieces, &Placement::replicated)) {
    save_full_model(module, path, group);
    return;
  }
  if (writes) save_file(state_dict(module), path);
}

namespace {

void tell_loaded(torch::nn::Module& module) {
  if (auto* placed = dynamic_cast<Placed*>(&module)) placed->pieces_were_loaded();
}

}  // namespace

std::function<void()> detail::prepare_load(torch::nn::Module& module, StateDict from,
                                           const std::filesystem::path& path) {
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;  // to, from
  for (const auto& piece : placements(module)) {
    const auto found = from.find(piece.name);
    if (found == from.end()) {
      throw Error(
          fmt::format("{}: '{}' is not in it, but the model has it. Fix: load a file that was "
                      "saved from the same model and configuration.",
                      path.string(), piece.name));
    }
    copies.emplace_back(piece.tensor.detach(), found->second);
    from.erase(found);
  }
  if (!from.empty()) {
    throw Error(
        fmt::format("{}: it holds '{}', which the model does not have. Fix: load a file that "
                    "was saved from the same model and configuration.",
                    path.string(), from.begin()->first));
  }
  return [copies = std::move(copies), &module] {
    const torch::NoGradGuard no_grad;
    // The tensors share the module's memory, so copying into them is loading.
    for (const auto& [to, saved] : copies) to.copy_(saved);
    for (const auto& part : module.modules(/*include_self=*/false)) tell_loaded(*part);
    tell_loaded(module);
  };
}

void load(torch::nn::Module& module, const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) {
    throw Error(fmt::format(
        "{}: is a folder. Fix: load_sharded_model(model, folder), on all ranks.", path.string()));
  }
  StateDict read = load_file(path);
  for (const auto& piece : placements(module)) {
    const auto found = read.find(piece.name);
    if (found == read.end()) continue;  // prepare_load refuses it
    detail::check_global_shape(piece, found->second.sizes(), path);
    found->second = detail::part_of(found->second, piece.offset, piece.tensor.sizes());
  }
  detail::prepare_load(module, std::move(read), path)();
}

}  // namespace distributed_utils

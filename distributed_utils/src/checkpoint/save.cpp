#include "distributed_utils/save.hpp"

#include <fmt/format.h>

#include "checkpoint/pieces.hpp"
#include "checkpoint/restore.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/observer.hpp"
#include "distributed_utils/placement.hpp"

namespace distributed_utils {

StateDict state_dict(const torch::nn::Module& module) {
  StateDict state;
  for (const auto& piece : placements(module)) state.emplace(piece.name, piece.tensor.detach());
  return state;
}

void save0(const torch::nn::Module& module, const std::filesystem::path& path, const Group& group) {
  const bool writes = get_rank(group) == 0;
  if (Observer* const watching = observer()) watching->save0_called(writes);
  for (const auto& piece : placements(module)) {
    if (piece.replicated) continue;
    throw Error(
        fmt::format("{}: save0 writes what rank 0 holds, but of '{}' ranks hold different parts. "
                    "Fix: save a checkpoint (Checkpoints), to which every rank adds its parts.",
                    path.string(), piece.name));
  }
  if (writes) save_file(state_dict(module), path);
}

namespace {

/// What belongs into the piece of a tensor that was read: all of it, or of a whole one the part.
at::Tensor part_for(const Placement& piece, const at::Tensor& read,
                    const std::filesystem::path& path) {
  if (read.sizes() == piece.tensor.sizes()) return read;
  if (read.sizes() == piece.global_shape) {
    return detail::part_of(read, piece.offset, piece.tensor.sizes());
  }
  throw Error(fmt::format(
      "{}: '{}' has shape {}, the model's has {}. Mend: use the configuration it was trained with.",
      path.string(), piece.name, c10::str(read.sizes()),
      c10::str(c10::IntArrayRef(piece.global_shape))));
}

}  // namespace

std::function<void()> detail::prepare_load(torch::nn::Module& module, StateDict from,
                                           const std::filesystem::path& path) {
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;  // to, from
  for (const auto& piece : placements(module)) {
    const auto found = from.find(piece.name);
    if (found == from.end()) {
      throw Error(
          fmt::format("{}: '{}' is not in it, but the model has it. Mend: load a file that was "
                      "saved from the same model and configuration.",
                      path.string(), piece.name));
    }
    copies.emplace_back(piece.tensor.detach(), part_for(piece, found->second, path));
    from.erase(found);
  }
  if (!from.empty()) {
    throw Error(
        fmt::format("{}: it holds '{}', which the model does not have. Mend: load a file that "
                    "was saved from the same model and configuration.",
                    path.string(), from.begin()->first));
  }
  return [copies = std::move(copies)] {
    const torch::NoGradGuard no_grad;
    // The tensors share the module's memory, so copying into them is loading.
    for (const auto& [to, saved] : copies) to.copy_(saved);
  };
}

void load(torch::nn::Module& module, const std::filesystem::path& path) {
  detail::prepare_load(module, load_file(path), path)();
}

}  // namespace distributed_utils

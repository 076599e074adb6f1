#pragma once
/// The tensors of a model or of an optimizer in a checkpoint.
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "distributed_utils/placement.hpp"

namespace distributed_utils::detail {

/// Those that are whole are in memory; of those in parts, whose files ranks wrote each for itself,
/// only the elements are read that are asked for.
class SavedTensors {
 public:
  SavedTensors() = default;

  /// whole: what was read of `file`, "model.safetensors" for example, whose parts are in
  /// "model-<rank>.safetensors". checked: this rank has found all files of the checkpoint good.
  SavedTensors(std::filesystem::path folder, const Manifest& manifest, const std::string& file,
               StateDict whole, bool checked);

  /// Of all tensors.
  std::set<std::string> names() const;

  /// Whether it holds a tensor of this name, and of which global shape.
  const std::vector<int64_t>* shape_of(const std::string& name) const;

  /// A part of a tensor that it holds. Throws Error, naming the file and the tensor, if a file is
  /// damaged and if elements are in none.
  at::Tensor read(const std::string& name, const std::vector<int64_t>& offset,
                  const std::vector<int64_t>& shape);

  /// Frees what is in memory.
  void clear();

 private:
  struct Global {
    std::vector<int64_t> shape;
    std::vector<TensorEntry> parts;  // none: it is whole
  };

  at::Tensor assemble(const std::string& name, const Global& global,
                      const std::vector<int64_t>& offset, const std::vector<int64_t>& shape);

  std::filesystem::path folder_;
  std::map<std::string, Global> globals_;
  std::map<std::string, FileEntry> unchecked_;  // by name
  StateDict whole_;
};

/// The file of the parts that this rank wrote: "model-2.safetensors" of "model.safetensors".
std::string part_file(const std::string& file, int rank);

/// What a rank needs for the pieces that it holds. A tensor that is not saved is left out; one
/// whose global shape is another is given as it is, and one that no rank has, whose names are
/// `of_all_ranks`, undefined: prepare_load refuses these in its words.
StateDict read_pieces(SavedTensors& saved, const std::vector<Placement>& pieces,
                      const std::set<std::string>& of_all_ranks);

/// The same for an optimizer's state, whose names end in those of the model's parameters.
StateDict read_optimizer_pieces(SavedTensors& saved, const std::vector<Placement>& parameters,
                                const std::set<std::string>& of_all_ranks);

}  // namespace distributed_utils::detail

#pragma once
/// The tensors of a model or of an optimizer in a checkpoint.
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "distributed_utils/placement.hpp"
#include "files/safetensors_format.hpp"

namespace distributed_utils::detail {

/// Those that are whole are in memory; of those in parts, whose files ranks wrote each for itself,
/// only the elements are read that are asked for.
class SavedTensors {
 public:
  SavedTensors() = default;

  /// parts: the files in which parts are. checked: they have been found good; otherwise each is
  /// checked before it is read.
  SavedTensors(std::filesystem::path folder, const std::vector<FileEntry>& parts, StateDict whole,
               bool checked);

  /// Of all tensors.
  std::set<std::string> names() const;

  /// Whether it holds a tensor of this name, and with what global shape.
  const std::vector<int64_t>* shape_of(const std::string& name) const;

  /// safetensors' name of the type of a tensor that it holds.
  std::string type_of(const std::string& name) const;

  /// A part of a tensor that it holds. Throws Error, naming the file and the tensor, if a file is
  /// damaged and if elements are in none.
  at::Tensor read(const std::string& name, const std::vector<int64_t>& offset,
                  const std::vector<int64_t>& shape);

  /// Frees what is in memory.
  void clear();

 private:
  struct Global {
    std::vector<int64_t> shape;
    std::string dtype;
    std::vector<TensorEntry> parts = {};  // none: it is whole
  };

  SafetensorsFile& opened(const std::string& file);

  at::Tensor assemble(const std::string& name, const Global& global,
                      const std::vector<int64_t>& offset, const std::vector<int64_t>& shape);

  std::filesystem::path folder_;
  std::map<std::string, Global> globals_;
  std::map<std::string, FileEntry> unchecked_;                      // by name
  std::map<std::string, std::unique_ptr<SafetensorsFile>> opened_;  // by name
  StateDict whole_;
};

/// The file of the parts that this rank wrote: "model-2.safetensors" of "model.safetensors".
std::string part_file(const std::string& file, int rank);

/// Those of a checkpoint's files that hold parts of what belongs in `file`.
std::vector<FileEntry> part_files(const Manifest& manifest, const std::string& file);

/// What a rank needs for the pieces that it holds. A tensor that is not saved is left out, and one
/// that no rank has, whose names are `of_all_ranks`, undefined: prepare_load refuses these in its
/// words. Throws Error, naming `path`, if a global shape is another.
StateDict read_pieces(SavedTensors& saved, const std::vector<Placement>& pieces,
                      const std::set<std::string>& of_all_ranks, const std::filesystem::path& path);

/// The same for an optimizer's state, whose names end in those of the model's parameters.
StateDict read_optimizer_pieces(SavedTensors& saved, const std::vector<Placement>& parameters,
                                const std::set<std::string>& of_all_ranks);

}  // namespace distributed_utils::detail

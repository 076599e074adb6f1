#include "checkpoint/saved_tensors.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "checkpoint/checkpoint_files.hpp"
#include "checkpoint/pieces.hpp"
#include "files/file_error.hpp"
#include "files/safetensors_format.hpp"

namespace distributed_utils::detail {
namespace {

using Shape = std::vector<int64_t>;

constexpr size_t kMostOpened = 64;

/// What two boxes of a tensor have in common.
struct Overlap {
  Shape begin, shape;
  bool empty = false;
};

Overlap overlap_of(const Shape& offset, const Shape& shape, const TensorEntry& part) {
  Overlap result;
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t begin = std::max(offset[i], part.offset[i]);
    const int64_t end = std::min(offset[i] + shape[i], part.offset[i] + part.local_shape[i]);
    result.begin.push_back(begin);
    result.shape.push_back(std::max<int64_t>(0, end - begin));
    result.empty = result.empty || end <= begin;
  }
  return result;
}

Shape minus(Shape left, const Shape& right) {
  for (size_t i = 0; i < left.size(); ++i) left[i] -= right[i];
  return left;
}

}  // namespace

std::string part_file(const std::string& file, int rank) {
  return fmt::format("{}-{}.safetensors", file.substr(0, file.find('.')), rank);
}

std::vector<FileEntry> part_files(const Manifest& manifest, const std::string& file) {
  std::vector<FileEntry> result;
  for (int rank = 0; rank < manifest.world_size; ++rank) {
    const auto found = std::ranges::find(manifest.files, part_file(file, rank), &FileEntry::name);
    if (found != manifest.files.end()) result.push_back(*found);
  }
  return result;
}

SavedTensors::SavedTensors(std::filesystem::path folder, const std::vector<FileEntry>& parts,
                           StateDict whole, bool checked)
    : folder_(std::move(folder)), whole_(std::move(whole)) {
  for (const auto& [name, tensor] : whole_) {
    globals_[name] = {tensor.sizes().vec(), dtype_name(tensor.scalar_type())};
  }
  for (const auto& file : parts) {
    if (!checked) unchecked_.emplace(file.name, file);
    for (const auto& part : file.tensors) {
      auto& global = globals_[part.name];
      const bool other = !global.parts.empty() && global.shape != part.global_shape;
      if (other || whole_.contains(part.name)) {
        fail_at(folder_ / kManifestFile,
                fmt::format("contradicts itself about the shape of '{}'", part.name));
      }
      global.shape = part.global_shape;
      global.dtype = part.dtype;
      global.parts.push_back(part);
    }
  }
}

std::set<std::string> SavedTensors::names() const {
  std::set<std::string> result;
  for (const auto& [name, global] : globals_) result.insert(name);
  return result;
}

const Shape* SavedTensors::shape_of(const std::string& name) const {
  const auto found = globals_.find(name);
  return found == globals_.end() ? nullptr : &found->second.shape;
}

std::string SavedTensors::type_of(const std::string& name) const { return globals_.at(name).dtype; }

// Each header is read once, not once for each tensor; but files that are open are counted too.
SafetensorsFile& SavedTensors::opened(const std::string& file) {
  auto found = opened_.find(file);
  if (found != opened_.end()) return *found->second;
  if (const auto unchecked = unchecked_.find(file); unchecked != unchecked_.end()) {
    check_file(folder_, unchecked->second);
    unchecked_.erase(unchecked);
  }
  if (opened_.size() == kMostOpened) opened_.clear();
  return *opened_.emplace(file, std::make_unique<SafetensorsFile>(folder_ / file)).first->second;
}

at::Tensor SavedTensors::read(const std::string& name, const Shape& offset, const Shape& shape) {
  const auto whole = whole_.find(name);
  if (whole != whole_.end()) return part_of(whole->second, offset, shape);
  return assemble(name, globals_.at(name), offset, shape);
}

at::Tensor SavedTensors::assemble(const std::string& name, const Global& global,
                                  const Shape& offset, const Shape& shape) {
  at::Tensor result;
  at::Tensor seen = at::zeros(shape, at::kBool);
  for (const auto& part : global.parts) {
    const auto overlap = overlap_of(offset, shape, part);
    if (overlap.empty && result.defined()) continue;
    // Where nothing is needed, the type is: a rank may hold no element of a tensor.
    const auto begin = overlap.empty ? Shape(shape.size(), 0) : minus(overlap.begin, part.offset);
    const auto elements = opened(part.file).read_part(
        name, part.local_shape, begin, overlap.empty ? Shape(shape.size(), 0) : overlap.shape);
    if (!result.defined()) result = at::empty(shape, elements.options());
    if (overlap.empty) continue;
    const auto place = minus(overlap.begin, offset);
    part_of(result, place, overlap.shape).copy_(elements);
    part_of(seen, place, overlap.shape).fill_(true);
  }
  const int64_t missing = seen.numel() - seen.sum().item<int64_t>();
  if (missing > 0) {
    fail_at(
        folder_ / kManifestFile,
        fmt::format("'{}' is incomplete: no file holds {} of the {} elements to read, from [{}] on",
                    name, missing, seen.numel(), fmt::join(offset, ", ")));
  }
  return result;
}

void SavedTensors::clear() { *this = SavedTensors(); }

StateDict read_pieces(SavedTensors& saved, const std::vector<Placement>& pieces,
                      const std::set<std::string>& of_all_ranks,
                      const std::filesystem::path& path) {
  StateDict result;
  for (const auto& name : saved.names()) {
    if (!of_all_ranks.contains(name)) result.emplace(name, at::Tensor());
  }
  for (const auto& piece : pieces) {
    const auto* shape = saved.shape_of(piece.name);
    if (shape == nullptr) continue;
    check_global_shape(piece, *shape, path);
    result.emplace(piece.name, saved.read(piece.name, piece.offset, piece.tensor.sizes().vec()));
  }
  return result;
}

StateDict read_optimizer_pieces(SavedTensors& saved, const std::vector<Placement>& parameters,
                                const std::set<std::string>& of_all_ranks) {
  std::unordered_map<std::string, const Placement*> known;
  for (const auto& parameter : parameters) known.emplace(parameter.name, &parameter);
  StateDict result;
  for (const auto& name : saved.names()) {
    const Shape& shape = *saved.shape_of(name);
    const bool is_rate = name.starts_with("lr.");
    const auto parameter = name.substr(name.find('.') + 1);
    const auto found = is_rate ? known.end() : known.find(parameter);
    if (!is_rate && found == known.end()) {
      if (!of_all_ranks.contains(parameter)) result.emplace(name, at::Tensor());
      continue;
    }
    const bool lies_alike = !is_rate && shape == found->second->global_shape;
    result.emplace(name,
                   saved.read(name, lies_alike ? found->second->offset : Shape(shape.size(), 0),
                              lies_alike ? found->second->tensor.sizes().vec() : shape));
  }
  return result;
}

}  // namespace distributed_utils::detail

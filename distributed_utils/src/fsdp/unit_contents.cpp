#include "fsdp/unit_contents.hpp"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "distributed_utils/error.hpp"

namespace distributed_utils::detail {
namespace {

/// The units around a module, as indices, from the outermost to the innermost.
using Path = std::vector<size_t>;

/// A parameter, and the units that hold all modules that have it.
struct Found {
  std::string name;
  at::Tensor tensor;
  Path path;
};

class Search {
 public:
  explicit Search(std::vector<UnitContents>& units) : units_(units) {
    for (size_t i = 1; i < units.size(); ++i) index_of_.emplace(units[i].block.get(), i);
  }

  void visit(const torch::nn::Module& module, const std::string& prefix, Path path) {
    if (const auto unit = index_of_.find(&module); unit != index_of_.end()) {
      path.push_back(unit->second);
      auto& name = units_[unit->second].name;
      if (name.empty()) name = prefix.substr(0, prefix.empty() ? 0 : prefix.size() - 1);
      seen_.insert(&module);
    }
    for (const auto& item : module.named_parameters(/*recurse=*/false)) {
      add(prefix + item.key(), item.value(), path);
    }
    for (const auto& child : module.named_children()) {
      visit(*child.value(), prefix + child.key() + ".", path);
    }
  }

  bool has_seen(const Block& block) const { return seen_.contains(&block); }
  const std::vector<Found>& found() const { return found_; }

 private:
  void add(const std::string& name, const at::Tensor& tensor, const Path& path) {
    const auto [place, is_new] = known_.emplace(tensor.unsafeGetTensorImpl(), found_.size());
    if (is_new) {
      found_.push_back({name, tensor, path});
      return;
    }
    auto& common = found_[place->second].path;
    const auto differs = std::mismatch(common.begin(), common.end(), path.begin(), path.end());
    common.erase(differs.first, common.end());
  }

  std::vector<UnitContents>& units_;
  std::unordered_map<const torch::nn::Module*, size_t> index_of_;
  std::unordered_set<const torch::nn::Module*> seen_;
  std::unordered_map<const c10::TensorImpl*, size_t> known_;
  std::vector<Found> found_;
};

void check_parameter(const std::string& name, const at::Tensor& tensor) {
  if (tensor.dim() == 0 || tensor.numel() == 0) {
    throw Error(
        fmt::format("FullyShardedDataParallel: the parameter {} of shape {} cannot be cut along "
                    "its first dimension. Fix: give it one, as in shape [1].",
                    name, c10::str(tensor.sizes())));
  }
}

void check_alike(const UnitContents& unit) {
  const auto& [first_name, first] = unit.parameters.front();
  for (const auto& [name, tensor] : unit.parameters) {
    if (tensor.scalar_type() == first.scalar_type() && tensor.device() == first.device()) continue;
    throw Error(fmt::format(
        "FullyShardedDataParallel: {} is {} on {}, but {} of the same unit is {} on {}. Fix: give "
        "parameters of another type or device a unit of their own, or convert the module first.",
        name, c10::toString(tensor.scalar_type()), tensor.device().str(), first_name,
        c10::toString(first.scalar_type()), first.device().str()));
  }
}

}  // namespace

std::vector<UnitContents> unit_contents(const std::shared_ptr<torch::nn::Module>& module,
                                        const std::vector<std::shared_ptr<Block>>& blocks) {
  std::vector<UnitContents> units = {{.name = "", .block = nullptr}};
  std::unordered_set<const Block*> known;
  for (const auto& block : blocks) {
    if (!block || !known.insert(block.get()).second) {
      throw Error(fmt::format(
          "FullyShardedDataParallel: number {} of the units is {}. Fix: name each block once.",
          units.size(), block ? "there a second time" : "null"));
    }
    units.push_back({.name = "", .block = block});
  }
  Search search(units);
  search.visit(*module, "", {});
  for (size_t i = 1; i < units.size(); ++i) {
    if (search.has_seen(*units[i].block)) continue;
    throw Error(
        fmt::format("FullyShardedDataParallel: number {} of the units is not part of the module. "
                    "Fix: register it there before, and give blocks of this module.",
                    i));
  }
  for (const auto& [name, tensor, path] : search.found()) {
    check_parameter(name, tensor);
    units[path.empty() ? 0 : path.back()].parameters.emplace_back(name, tensor);
  }
  for (const auto& unit : units) {
    if (!unit.parameters.empty()) check_alike(unit);
  }
  return units;
}

}  // namespace distributed_utils::detail

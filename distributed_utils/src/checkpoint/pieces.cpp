#include "checkpoint/pieces.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <sstream>
#include <unordered_set>

#include "files/file_error.hpp"
#include "group/together.hpp"

namespace distributed_utils::detail {
namespace {

bool is_empty_part(const Placement& piece) {
  const auto whole = std::accumulate(piece.global_shape.begin(), piece.global_shape.end(),
                                     int64_t{1}, std::multiplies<>());
  return piece.tensor.numel() == 0 && whole > 0;
}

}  // namespace

std::vector<Placement> whole_placements(const StateDict& tensors) {
  std::vector<Placement> result;
  for (const auto& [name, tensor] : tensors) {
    result.push_back({.name = name,
                      .tensor = tensor,
                      .global_shape = tensor.sizes().vec(),
                      .offset = std::vector<int64_t>(tensor.dim(), 0)});
  }
  return result;
}

at::Tensor part_of(const at::Tensor& tensor, at::IntArrayRef offset, at::IntArrayRef shape) {
  at::Tensor part = tensor;
  for (size_t i = 0; i < shape.size(); ++i) {
    part = part.narrow(static_cast<int64_t>(i), offset[i], shape[i]);
  }
  return part;
}

std::set<std::string> names_of_all_ranks(const Group& group, const std::vector<Placement>& pieces) {
  // The names of torch's modules have no line breaks.
  const auto texts = together(group, [&] {
    std::string text;
    for (const auto& piece : pieces) text += piece.name + "\n";
    return text;
  });
  std::set<std::string> names;
  for (const auto& text : texts) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) names.insert(line);
  }
  return names;
}

void check_global_shape(const Placement& piece, at::IntArrayRef shape,
                        const std::filesystem::path& path) {
  if (shape == piece.global_shape) return;
  fail_at(path,
          fmt::format("'{}' has shape {}, the model's has {}. Fix: use the configuration it "
                      "was trained with",
                      piece.name, c10::str(shape), c10::str(at::IntArrayRef(piece.global_shape))));
}

std::string describe(const Placement& piece) {
  return fmt::format("{} [{}] [{}]", piece.name, fmt::join(piece.offset, ", "),
                     fmt::join(piece.tensor.sizes(), ", "));
}

std::vector<Placement> pieces_to_write(const std::vector<Placement>& pieces, int rank,
                                       const std::vector<std::vector<std::string>>& all) {
  std::unordered_set<std::string> written;
  for (int lower = 0; lower < rank; ++lower) written.insert(all[lower].begin(), all[lower].end());
  std::vector<Placement> result;
  for (const auto& piece : pieces) {
    const bool others = piece.replicated ? rank != 0 : written.contains(describe(piece));
    if (!others && !is_empty_part(piece)) result.push_back(piece);
  }
  return result;
}

}  // namespace distributed_utils::detail

#include "checkpoint/cover.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>

#include "files/file_error.hpp"

namespace distributed_utils::detail {
namespace {

namespace fs = std::filesystem;
using Parts = std::vector<const TensorEntry*>;

// Shapes come from files: their product may be too large for a number.
int64_t count(const fs::path& file, const std::string& name, const std::vector<int64_t>& shape) {
  int64_t result = 1;
  for (const int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(result, extent, &result)) {
      fail_at(file,
              fmt::format("'{}' has an impossible shape, [{}]", name, fmt::join(shape, ", ")));
    }
  }
  return result;
}

void check_within(const fs::path& file, const TensorEntry& part) {
  const size_t dimensions = part.global_shape.size();
  bool within = part.offset.size() == dimensions && part.local_shape.size() == dimensions;
  for (size_t i = 0; within && i < dimensions; ++i) {
    within = part.offset[i] >= 0 && part.local_shape[i] >= 0 &&
             part.local_shape[i] <= part.global_shape[i] - part.offset[i];
  }
  if (within) return;
  fail_at(file, fmt::format("its piece of '{}', of shape [{}] from [{}] on, is outside the whole "
                            "tensor, which is [{}]. Fix: save the model again",
                            part.name, fmt::join(part.local_shape, ", "),
                            fmt::join(part.offset, ", "), fmt::join(part.global_shape, ", ")));
}

bool overlap(const TensorEntry& a, const TensorEntry& b) {
  for (size_t i = 0; i < a.offset.size(); ++i) {
    if (a.offset[i] + a.local_shape[i] <= b.offset[i]) return false;
    if (b.offset[i] + b.local_shape[i] <= a.offset[i]) return false;
  }
  return true;
}

void check_apart(const fs::path& folder, Parts& parts) {
  const auto begin = [](const TensorEntry* part) {
    return part->offset.empty() ? 0 : part->offset[0];
  };
  // In this order a piece can overlap only those behind it that begin before it ends.
  std::ranges::sort(parts, {}, begin);
  for (size_t i = 0; i < parts.size(); ++i) {
    const int64_t end = parts[i]->offset.empty() ? 1 : begin(parts[i]) + parts[i]->local_shape[0];
    for (size_t k = i + 1; k < parts.size() && begin(parts[k]) < end; ++k) {
      if (!overlap(*parts[i], *parts[k])) continue;
      fail_at(folder / parts[k]->file,
              fmt::format("it holds elements of '{}' that {} holds too. Fix: remove files of "
                          "another save from the folder, or save the model again",
                          parts[k]->name, parts[i]->file));
    }
  }
}

void check_tensor(const fs::path& folder, Parts parts) {
  const TensorEntry& first = *parts[0];
  int64_t held = 0;
  for (const auto* part : parts) {
    const fs::path file = folder / part->file;
    if (part->global_shape != first.global_shape || part->dtype != first.dtype) {
      fail_at(file,
              fmt::format("it holds a piece of '{}' as {} [{}], but {} as {} [{}]. Fix: remove "
                          "files of another save from the folder, or save the model again",
                          part->name, part->dtype, fmt::join(part->global_shape, ", "), first.file,
                          first.dtype, fmt::join(first.global_shape, ", ")));
    }
    check_within(file, *part);
    held += count(file, part->name, part->local_shape);
  }
  const fs::path file = folder / first.file;
  const int64_t all = count(file, first.name, first.global_shape);
  std::erase_if(parts, [](const auto* part) {
    return std::ranges::find(part->local_shape, 0) != part->local_shape.end();
  });
  check_apart(folder, parts);
  // Pieces that lie within the tensor and apart from each other are all of it if they are as many.
  if (held == all) return;
  fail_at(file,
          fmt::format(
              "it holds a piece of '{}', but no file in the folder holds {} of its {} elements. "
              "Fix: bring back the missing file, or save the model again, on all ranks",
              first.name, all - held, all));
}

}  // namespace

void check_cover(const fs::path& folder, const std::vector<FileEntry>& files) {
  std::map<std::string, Parts> tensors;
  for (const auto& file : files) {
    for (const auto& part : file.tensors) tensors[part.name].push_back(&part);
  }
  for (const auto& [name, parts] : tensors) check_tensor(folder, parts);
}

}  // namespace distributed_utils::detail

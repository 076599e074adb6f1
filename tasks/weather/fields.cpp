#include "fields.hpp"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "npy.hpp"
#include "tasks/parallel.hpp"

namespace tasks::weather {
namespace {

namespace fs = std::filesystem;

at::Tensor read_channels(const fs::path& file, int64_t channels) {
  const auto array = read_npy(file);
  if (array.shape != std::vector<int64_t>{1, channels, 1, 1}) {
    throw Error(
        fmt::format("{}: it has the shape ({}), but the fields have {} channels, so it "
                    "must be (1, {}, 1, 1)",
                    file.string(), fmt::join(array.shape, ", "), channels, channels));
  }
  return at::tensor(array.values, at::kDouble).view({channels, 1, 1});
}

std::vector<fs::path> files_of(const fs::path& folder) {
  std::error_code failure;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    if (entry.path().extension() == ".h5") files.push_back(entry.path());
  }
  if (failure) throw Error(fmt::format("{}: {}", folder.string(), failure.message()));
  if (files.empty()) throw Error(fmt::format("{}: it holds no .h5 files", folder.string()));
  std::ranges::sort(files);
  return files;
}

}  // namespace

std::string folder_of(std::string_view split) {
  return split == "validation" ? "valid" : std::string(split);
}

Statistics read_statistics(const fs::path& folder, int64_t channels) {
  const auto means = folder / "stats" / "global_means.npy";
  const auto deviations = folder / "stats" / "global_stds.npy";
  Statistics read{.means = read_channels(means, channels),
                  .deviations = read_channels(deviations, channels)};
  if (!read.means.isfinite().all().item<bool>()) {
    throw Error(means.string() + ": a mean is not finite");
  }
  const auto fits = read.deviations.isfinite().logical_and(read.deviations > 0);
  if (!fits.all().item<bool>()) {
    throw Error(deviations.string() + ": a standard deviation is not above zero and finite");
  }
  return read;
}

Fields::Fields(const fs::path& folder, std::string_view split, int64_t lead, torch::Dtype type)
    : lead_(lead), type_(type) {
  for (const auto& file : files_of(folder / folder_of(split))) open(file);
  const auto statistics = read_statistics(folder, channels());
  means_ = statistics.means.to(type);
  factors_ = statistics.deviations.reciprocal().to(type);
}

void Fields::open(const fs::path& file) {
  hdf5::Dataset opened(file, "fields", 4);
  const auto& shape = opened.shape();
  if (!files_.empty() &&
      !std::equal(shape.begin() + 1, shape.end(), files_[0].shape().begin() + 1)) {
    throw Error(fmt::format("{}: 'fields' has the shape [{}], unlike that of {}: [{}]",
                            file.string(), fmt::join(shape, ", "), files_[0].file().string(),
                            fmt::join(files_[0].shape(), ", ")));
  }
  if (shape[0] <= lead_) {
    throw Error(fmt::format("{}: it has {} time steps, too few for a forecast of {}", file.string(),
                            shape[0], lead_));
  }
  const auto before = ends_.empty() ? 0 : ends_.back();
  ends_.push_back(before + static_cast<size_t>(shape[0] - lead_));
  files_.push_back(std::move(opened));
}

void Fields::read(size_t index, bool later, int64_t channel, at::Tensor into) const {
  const auto file = static_cast<size_t>(std::ranges::upper_bound(ends_, index) - ends_.begin());
  const auto place = static_cast<int64_t>(index - (file == 0 ? 0 : ends_[file - 1]));
  const auto time = place + (later ? lead_ : 0);
  const auto numbers = at::empty({height(), width()}, at::kFloat);
  files_[file].read(time, channel, numbers.mutable_data_ptr<float>());
  if (!numbers.sum().isfinite().item<bool>()) {
    throw Error(fmt::format("{}: channel {} of time step {} has numbers that are not finite",
                            files_[file].file().string(), channel, time));
  }
  at::sub_out(into, numbers.to(type_), means_[channel]).mul_(factors_[channel]);
}

// Threads share the channels. Each channel fits into a core's cache, so numbers go through memory
// once.
Batch Fields::fetch(c10::ArrayRef<size_t> indices) const {
  const auto samples = static_cast<int64_t>(indices.size());
  const std::vector<int64_t> sizes{samples, channels(), height(), width()};
  const auto now = new_tensor(sizes, type_), later = new_tensor(sizes, type_);
  const auto of_time = samples * channels();
  parallel_for(2 * of_time, [&](int64_t i) {
    const bool second = i >= of_time;
    const auto place = i % of_time;
    const auto sample = place / channels(), channel = place % channels();
    read(indices[static_cast<size_t>(sample)], second, channel,
         (second ? later : now)[sample][channel]);
  });
  return {now, Target(later, samples)};
}

}  // namespace tasks::weather

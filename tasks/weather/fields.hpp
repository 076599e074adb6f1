#pragma once
/// Fields on disk, laid out as the tutorial's ERA5 files are:
///   <split>/<any name>.h5      'fields', fp32 [time, channels, latitudes, longitudes]
///   stats/global_means.npy     [1, channels, 1, 1]
///   stats/global_stds.npy      the same; both fp32 or fp64
#include <ATen/core/Tensor.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hdf5.hpp"
#include "tasks/task.hpp"

namespace tasks::weather {

/// What the numbers of a channel are normalised by.
struct Statistics {
  at::Tensor means, deviations;  ///< fp64 [channels, 1, 1]
};

/// Throws Error for files that are missing or damaged, have another number of channels, or hold
/// what nobody can divide by.
Statistics read_statistics(const std::filesystem::path& folder, int64_t channels);

/// The pairs of a split: the fields of a time step, and those `lead` time steps later in the same
/// file. Both are normalised, [channels, height, width].
class Fields : public Dataset::Source {
 public:
  /// Opens all files, in the order of their names. Throws Error for a split without files, for one
  /// that is damaged or too short for a pair, and for files whose shapes differ.
  Fields(const std::filesystem::path& folder, std::string_view split, int64_t lead,
         torch::Dtype type);

  Batch fetch(c10::ArrayRef<size_t> indices) const override;
  size_t size() const override { return ends_.back(); }

  int64_t channels() const { return files_.front().shape()[1]; }
  int64_t height() const { return files_.front().shape()[2]; }
  int64_t width() const { return files_.front().shape()[3]; }
  const std::filesystem::path& first_file() const { return files_.front().file(); }

 private:
  void open(const std::filesystem::path& file);
  // One channel of a sample's time step, or of the later one, normalised.
  void read(size_t index, bool later, int64_t channel, at::Tensor into) const;

  int64_t lead_;
  torch::Dtype type_;
  std::vector<hdf5::Dataset> files_;
  std::vector<size_t> ends_;  ///< of each file's samples among all
  at::Tensor means_, factors_;
};

/// The folder of a split: the validation split lies in "valid".
std::string folder_of(std::string_view split);

}  // namespace tasks::weather

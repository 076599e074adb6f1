#pragma once
/// Small data of real layout for tests.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "hdf5.hpp"
#include "npy.hpp"

namespace tasks::weather {

/// The number at a place of a file's fields, [time, channel, row, column], all of them distinct.
constexpr float number_at(int64_t file, int64_t time, int64_t cell) {
  return float(file * 1000 + time * 10) + float(cell) / 64;
}

/// Writes fields [steps, the rest of the shape] whose numbers are number_at().
inline void write_fields(const std::filesystem::path& path, int64_t file,
                         const std::vector<int64_t>& shape, const std::string& name = "fields") {
  int64_t cells = 1;
  for (size_t i = 1; i < shape.size(); ++i) cells *= shape[i];
  std::vector<float> values(static_cast<size_t>(cells));
  std::filesystem::create_directories(path.parent_path());
  hdf5::Writer writer(path, name, shape);
  for (int64_t time = 0; time < shape[0]; ++time) {
    for (int64_t cell = 0; cell < cells; ++cell) {
      values[static_cast<size_t>(cell)] = number_at(file, time, cell);
    }
    writer.write(time, values.data());
  }
  writer.close();
}

inline void write_statistics(const std::filesystem::path& folder, int64_t channels) {
  std::filesystem::create_directories(folder / "stats");
  std::vector<double> means, deviations;
  for (int64_t i = 0; i < channels; ++i) {
    means.push_back(double(i) - 0.5);
    deviations.push_back(double(i) + 2);
  }
  write_npy(folder / "stats/global_means.npy", {{1, channels, 1, 1}, means});
  write_npy(folder / "stats/global_stds.npy", {{1, channels, 1, 1}, deviations});
}

/// Two training files of 4 and 3 time steps, one of each other split; 2 channels of 4 x 8.
inline void write_all(const std::filesystem::path& folder) {
  write_fields(folder / "train/1990.h5", 0, {4, 2, 4, 8});
  write_fields(folder / "train/1991.h5", 1, {3, 2, 4, 8});
  write_fields(folder / "valid/1992.h5", 2, {3, 2, 4, 8});
  write_fields(folder / "test/1993.h5", 3, {3, 2, 4, 8});
  write_statistics(folder, 2);
}

inline std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace tasks::weather

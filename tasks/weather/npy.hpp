#pragma once
/// NumPy's .npy files
/// (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html): the means and
/// standard deviations that come with the fields.
#include <cstdint>
#include <filesystem>
#include <vector>

namespace tasks::weather {

struct NpyArray {
  std::vector<int64_t> shape;
  std::vector<double> values;  ///< in row-major order
};

/// Reads a file of versions 1 to 3 whose numbers are fp32 or fp64, little-endian, in row-major
/// order. Throws Error, naming the file, for anything else and for a length that is not the
/// header's.
NpyArray read_npy(const std::filesystem::path& file);

/// Writes fp64 numbers. Throws Error if it cannot.
void write_npy(const std::filesystem::path& file, const NpyArray& array);

}  // namespace tasks::weather

#pragma once
/// The few things that weather needs of HDF5 (https://docs.hdfgroup.org/hdf5/v1_10): datasets of
/// fp32 numbers, read by places of their first two dimensions and written by those of the first. A
/// build of HDF5 need not let threads in, so one lock of ours is around every call. No other source
/// includes its header.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace tasks::weather::hdf5 {

/// A dataset of fp32 numbers in an open file.
class Dataset {
 public:
  /// Opens the file for reading, without file locks, which parallel file systems lack. Throws
  /// Error, naming the file, if it is missing, damaged, no HDF5, or without such a dataset of
  /// `dimensions` dimensions whose numbers are fp32 and all in this file.
  Dataset(const std::filesystem::path& file, const std::string& name, size_t dimensions);
  ~Dataset();
  Dataset(Dataset&&) noexcept;
  Dataset& operator=(Dataset&&) = delete;

  const std::filesystem::path& file() const { return file_; }
  const std::vector<int64_t>& shape() const { return shape_; }

  /// Reads one place of the first two dimensions into `values`: [the other dimensions]. Any thread
  /// may, and where the numbers lie as one block, as most do, threads read side by side. Throws
  /// Error if the file does not have them.
  void read(int64_t first, int64_t second, float* values) const;

 private:
  struct Handles;

  std::filesystem::path file_;
  std::vector<int64_t> shape_;
  std::unique_ptr<Handles> handles_;
};

/// A new file with one dataset. The same numbers give the same bytes, and its headers carry
/// checksums.
class Writer {
 public:
  /// Throws Error, naming the file, if it cannot be made.
  Writer(const std::filesystem::path& file, const std::string& name,
         const std::vector<int64_t>& shape);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Writes one place of the first dimension. Throws Error, as when the disk is full.
  void write(int64_t place, const float* values);
  /// To be called last: throws Error if not all got to the disk.
  void close();

 private:
  struct Handles;

  std::filesystem::path file_;
  std::vector<int64_t> shape_;
  std::unique_ptr<Handles> handles_;
};

}  // namespace tasks::weather::hdf5

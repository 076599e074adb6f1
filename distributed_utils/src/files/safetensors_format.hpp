#pragma once
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "distributed_utils/safetensors.hpp"

namespace distributed_utils::detail {

/// safetensors' name of a type; null if it has none.
const char* dtype_name(at::ScalarType type);

/// The type of that name. Throws Error, naming `path`, for a name that safetensors does not have.
at::ScalarType scalar_type(const std::filesystem::path& path, const std::string& text);

/// What a header says of a tensor; its bytes follow those of the tensor before it.
struct TensorHead {
  std::string name;
  at::ScalarType type;
  std::vector<int64_t> shape;
};

/// The begin of a file, after which the tensors' bytes come in this order. `path` only names the
/// file in errors.
std::string safetensors_header(const std::vector<TensorHead>& tensors,
                               const std::filesystem::path& path,
                               const std::map<std::string, std::string>& metadata);

/// Passes on what save_file writes, piece by piece. `path` only names the file in errors.
void write_safetensors(const StateDict& tensors, const std::filesystem::path& path,
                       const std::map<std::string, std::string>& metadata,
                       const std::function<void(const void*, size_t)>& write);

/// A file whose tensors are read one by one, whole or in part. Throws Error, naming the file,
/// for everything that a damaged one could say.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(std::filesystem::path path);

  std::vector<std::string> names() const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  TensorHead head(const std::string& name) const;
  at::Tensor read(const std::string& name);

  /// The elements from `offset` on, of this shape, and no others. Throws Error too if `name` is not
  /// in the file with the shape `whole`.
  at::Tensor read_part(const std::string& name, const std::vector<int64_t>& whole,
                       const std::vector<int64_t>& offset, const std::vector<int64_t>& shape);

 private:
  struct Entry {
    at::ScalarType type;
    std::vector<int64_t> shape;
    uint64_t begin, end;  // in the file
  };

  Entry checked_entry(const std::string& name, at::ScalarType type, std::vector<int64_t> shape,
                      const std::vector<int64_t>& bytes, uint64_t data_begin,
                      uint64_t data_size) const;
  void check_all_is_named(uint64_t data_begin, uint64_t file_size) const;
  void read_bytes(const std::string& name, uint64_t begin, char* to, uint64_t size);

  std::filesystem::path path_;
  std::ifstream file_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace distributed_utils::detail

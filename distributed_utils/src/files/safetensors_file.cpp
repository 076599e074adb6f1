#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "files/file_error.hpp"
#include "files/safetensors_format.hpp"
#include "files/whole_numbers.hpp"

namespace distributed_utils::detail {
namespace {

using nlohmann::json;

// The reference reader refuses larger headers, and a damaged length must not make us allocate.
constexpr uint64_t kMaxHeader = 100'000'000;

/// A run of elements that lie one after the other in the file, and in the part that is read.
struct Run {
  uint64_t from, to, size;  // in elements
};

/// The runs that make up a part of a tensor, in the order in which the part holds them.
std::vector<Run> runs_of(const std::vector<int64_t>& whole, const std::vector<int64_t>& offset,
                         const std::vector<int64_t>& shape) {
  // Dimensions that are taken whole, from the last one on, belong to one run.
  size_t inner = whole.size();
  uint64_t inner_size = 1;
  while (inner > 0 && shape[inner - 1] == whole[inner - 1]) {
    inner_size *= static_cast<uint64_t>(whole[--inner]);
  }
  std::vector<Run> runs = {{0, 0, inner_size}};
  uint64_t whole_stride = inner_size, part_stride = inner_size;
  for (size_t i = inner; i-- > 0;) {
    const auto begin = static_cast<uint64_t>(offset[i]), count = static_cast<uint64_t>(shape[i]);
    if (i + 1 == inner) {  // neighbours: still one run
      runs[0] = {begin * whole_stride, 0, count * inner_size};
    } else {
      const auto once = std::exchange(runs, {});
      for (uint64_t k = 0; k < count; ++k) {
        for (const Run& run : once) {
          runs.push_back(
              {run.from + (begin + k) * whole_stride, run.to + k * part_stride, run.size});
        }
      }
    }
    whole_stride *= static_cast<uint64_t>(whole[i]);
    part_stride *= count;
  }
  return runs;
}

}  // namespace

SafetensorsFile::SafetensorsFile(std::filesystem::path path)
    : path_(std::move(path)), file_(path_, std::ios::binary | std::ios::ate) {
  if (!file_) fail_at(path_, fmt::format("cannot be opened: {}", std::strerror(errno)));
  const auto size = static_cast<uint64_t>(file_.tellg());
  uint64_t length = 0;
  file_.seekg(0);
  file_.read(reinterpret_cast<char*>(&length), sizeof length);
  if (!file_ || length > kMaxHeader || length > size - sizeof length) {
    fail_at(path_, "is not a safetensors file, or a truncated one");
  }
  std::string text(length, '\0');
  file_.read(text.data(), static_cast<std::streamsize>(length));
  const uint64_t data_begin = sizeof length + length;
  try {
    const json header = json::parse(text);
    if (!header.is_object()) fail_at(path_, "its header is not a JSON object");
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") {
        metadata_ = entry.get<std::map<std::string, std::string>>();
        continue;
      }
      const auto bytes =
          whole_numbers(path_, entry.at("data_offsets"), "the byte range of " + name);
      entries_.emplace(
          name, checked_entry(name, scalar_type(path_, entry.at("dtype").get<std::string>()),
                              whole_numbers(path_, entry.at("shape"), "the shape of " + name),
                              bytes, data_begin, size - data_begin));
    }
  } catch (const json::exception& error) {
    fail_at(path_, fmt::format("its header is damaged: {}", error.what()));
  }
  check_all_is_named(data_begin, size);
}

// The format has tensors lie one behind the other, up to the file's end: a range that is another
// tensor's would else be read as if nothing had happened.
void SafetensorsFile::check_all_is_named(uint64_t data_begin, uint64_t file_size) const {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const auto& [name, entry] : entries_) ranges.emplace_back(entry.begin, entry.end);
  std::sort(ranges.begin(), ranges.end());
  uint64_t at = data_begin;
  bool follow = true;
  for (const auto& [begin, end] : ranges) {
    follow = follow && begin == at;
    at = end;
  }
  if (!follow || at != file_size) {
    fail_at(path_, "its tensors leave gaps or overlap, so it is damaged");
  }
}

SafetensorsFile::Entry SafetensorsFile::checked_entry(const std::string& name, at::ScalarType type,
                                                      std::vector<int64_t> shape,
                                                      const std::vector<int64_t>& bytes,
                                                      uint64_t data_begin,
                                                      uint64_t data_size) const {
  uint64_t size = c10::elementSize(type);
  for (const int64_t dimension : shape) {
    if (dimension < 0 || __builtin_mul_overflow(size, static_cast<uint64_t>(dimension), &size)) {
      fail_at(path_, fmt::format("'{}' has an impossible shape", name));
    }
  }
  const bool is_range = bytes.size() == 2 && bytes[0] >= 0 && bytes[0] <= bytes[1];
  if (!is_range || static_cast<uint64_t>(bytes[1]) > data_size ||
      static_cast<uint64_t>(bytes[1] - bytes[0]) != size) {
    fail_at(path_, fmt::format("the byte range of '{}' does not match its shape or the file, so "
                               "the file is truncated or damaged",
                               name));
  }
  return {type, std::move(shape), data_begin + static_cast<uint64_t>(bytes[0]),
          data_begin + static_cast<uint64_t>(bytes[1])};
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> result;
  for (const auto& [name, entry] : entries_) result.push_back(name);
  return result;
}

TensorHead SafetensorsFile::head(const std::string& name) const {
  const Entry& entry = entries_.at(name);
  return {name, entry.type, entry.shape};
}

void SafetensorsFile::read_bytes(const std::string& name, uint64_t begin, char* to, uint64_t size) {
  file_.seekg(static_cast<std::streamoff>(begin));
  file_.read(to, static_cast<std::streamsize>(size));
  if (!file_) fail_at(path_, fmt::format("could not read '{}'", name));
}

at::Tensor SafetensorsFile::read(const std::string& name) {
  const Entry& entry = entries_.at(name);
  at::Tensor tensor = at::empty(entry.shape, at::TensorOptions().dtype(entry.type));
  read_bytes(name, entry.begin, static_cast<char*>(tensor.data_ptr()), tensor.nbytes());
  return tensor;
}

at::Tensor SafetensorsFile::read_part(const std::string& name, const std::vector<int64_t>& whole,
                                      const std::vector<int64_t>& offset,
                                      const std::vector<int64_t>& shape) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) fail_at(path_, fmt::format("'{}' is not in it", name));
  const Entry& entry = found->second;
  if (entry.shape != whole) {
    fail_at(path_, fmt::format("'{}' has shape {} in it, not {}", name,
                               c10::str(c10::IntArrayRef(entry.shape)),
                               c10::str(c10::IntArrayRef(whole))));
  }
  at::Tensor part = at::empty(shape, at::TensorOptions().dtype(entry.type));
  if (part.numel() == 0) return part;
  auto* const to = static_cast<char*>(part.data_ptr());
  const uint64_t bytes = c10::elementSize(entry.type);
  for (const Run& run : runs_of(whole, offset, shape)) {
    read_bytes(name, entry.begin + run.from * bytes, to + run.to * bytes, run.size * bytes);
  }
  return part;
}

}  // namespace distributed_utils::detail

#include "distributed_utils/safetensors.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "files/atomic_file.hpp"
#include "files/file_error.hpp"
#include "files/safetensors_format.hpp"

namespace distributed_utils {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<at::ScalarType, const char*>, 10> kTypes = {{
    {at::kDouble, "F64"},
    {at::kFloat, "F32"},
    {at::kHalf, "F16"},
    {at::kBFloat16, "BF16"},
    {at::kLong, "I64"},
    {at::kInt, "I32"},
    {at::kShort, "I16"},
    {at::kChar, "I8"},
    {at::kByte, "U8"},
    {at::kBool, "BOOL"},
}};

const char* type_name(const std::filesystem::path& path, const detail::TensorHead& tensor) {
  if (const char* text = detail::dtype_name(tensor.type)) return text;
  detail::fail_at(path, fmt::format("safetensors has no type for '{}' ({})", tensor.name,
                                    c10::toString(tensor.type)));
}

uint64_t size_of(const detail::TensorHead& tensor) {
  uint64_t size = c10::elementSize(tensor.type);
  for (const int64_t extent : tensor.shape) size *= static_cast<uint64_t>(extent);
  return size;
}

}  // namespace

namespace detail {

at::ScalarType scalar_type(const std::filesystem::path& path, const std::string& text) {
  for (const auto& [type, name] : kTypes) {
    if (text == name) return type;
  }
  fail_at(path, fmt::format("unknown type '{}'", text));
}

const char* dtype_name(at::ScalarType type) {
  for (const auto& [known, text] : kTypes) {
    if (type == known) return text;
  }
  return nullptr;
}

std::string safetensors_header(const std::vector<TensorHead>& tensors,
                               const std::filesystem::path& path,
                               const std::map<std::string, std::string>& metadata) {
  json header = json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const auto& tensor : tensors) {
    const uint64_t end = offset + size_of(tensor);
    header[tensor.name] = {{"dtype", type_name(path, tensor)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data begin aligned
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

void write_safetensors(const StateDict& tensors, const std::filesystem::path& path,
                       const std::map<std::string, std::string>& metadata,
                       const std::function<void(const void*, size_t)>& write) {
  std::vector<TensorHead> heads;
  for (const auto& [name, tensor] : tensors) {
    heads.push_back({name, tensor.scalar_type(), tensor.sizes().vec()});
  }
  const std::string header = safetensors_header(heads, path, metadata);
  write(header.data(), header.size());
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor bytes = tensor.detach().cpu().contiguous();
    write(bytes.const_data_ptr(), bytes.nbytes());
  }
}

}  // namespace detail

void save_file(const StateDict& tensors, const std::filesystem::path& path,
               const std::map<std::string, std::string>& metadata) {
  detail::AtomicFile file(path);
  detail::write_safetensors(tensors, path, metadata,
                            [&](const void* data, size_t size) { file.write(data, size); });
  file.commit();
}

StateDict load_file(const std::filesystem::path& path) {
  detail::SafetensorsFile file(path);
  StateDict tensors;
  for (const auto& name : file.names()) tensors.emplace(name, file.read(name));
  return tensors;
}

}  // namespace distributed_utils

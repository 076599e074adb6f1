#include "distributed_utils/safetensors.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
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

// The reference reader refuses larger headers, and a damaged length must not make us allocate.
constexpr uint64_t kMaxHeader = 100'000'000;

const char* type_name(const std::filesystem::path& path, const std::string& name,
                      const at::Tensor& tensor) {
  if (const char* text = detail::dtype_name(tensor.scalar_type())) return text;
  detail::fail_at(path, fmt::format("safetensors has no type for '{}' ({})", name,
                                    c10::toString(tensor.scalar_type())));
}

at::ScalarType scalar_type(const std::filesystem::path& path, const std::string& text) {
  for (const auto& [type, name] : kTypes) {
    if (text == name) return type;
  }
  detail::fail_at(path, fmt::format("unknown type '{}'", text));
}

/// One tensor's entry: reads its bytes from the file, checking everything a damaged header could
/// say.
at::Tensor read_tensor(std::ifstream& file, const std::filesystem::path& path,
                       const std::string& name, const json& entry, uint64_t data_begin,
                       uint64_t data_size) {
  const auto type = scalar_type(path, entry.at("dtype").get<std::string>());
  const auto shape = entry.at("shape").get<std::vector<int64_t>>();
  const auto offsets = entry.at("data_offsets").get<std::array<uint64_t, 2>>();
  uint64_t bytes = c10::elementSize(type);
  for (const int64_t dimension : shape) {
    if (dimension < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dimension), &bytes)) {
      detail::fail_at(path, fmt::format("'{}' has an impossible shape", name));
    }
  }
  if (offsets[0] > offsets[1] || offsets[1] > data_size || offsets[1] - offsets[0] != bytes) {
    detail::fail_at(
        path, fmt::format("the byte range of '{}' does not fit its shape or the file, which is "
                          "truncated or damaged",
                          name));
  }
  at::Tensor tensor = at::empty(shape, at::TensorOptions().dtype(type));
  file.seekg(static_cast<std::streamoff>(data_begin + offsets[0]));
  file.read(static_cast<char*>(tensor.data_ptr()), static_cast<std::streamsize>(bytes));
  if (!file) detail::fail_at(path, fmt::format("could not read '{}'", name));
  return tensor;
}

}  // namespace

namespace detail {

const char* dtype_name(at::ScalarType type) {
  for (const auto& [known, text] : kTypes) {
    if (type == known) return text;
  }
  return nullptr;
}

void write_safetensors(const StateDict& tensors, const std::filesystem::path& path,
                       const std::map<std::string, std::string>& metadata,
                       const std::function<void(const void*, size_t)>& write) {
  json header = json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const uint64_t end = offset + tensor.nbytes();
    header[name] = {{"dtype", type_name(path, name, tensor)},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data begin aligned
  const uint64_t length = text.size();
  write(&length, sizeof length);
  write(text.data(), text.size());
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
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) detail::fail_at(path, fmt::format("cannot be opened: {}", std::strerror(errno)));
  const auto size = static_cast<uint64_t>(file.tellg());
  uint64_t length = 0;
  file.seekg(0);
  file.read(reinterpret_cast<char*>(&length), sizeof length);
  if (!file || length > kMaxHeader || length > size - sizeof length) {
    detail::fail_at(path, "is no safetensors file, or a truncated one");
  }
  std::string text(length, '\0');
  file.read(text.data(), static_cast<std::streamsize>(length));
  const uint64_t data_begin = sizeof length + length;
  StateDict tensors;
  try {
    const json header = json::parse(text);
    if (!header.is_object()) detail::fail_at(path, "its header is no JSON object");
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") continue;
      tensors.emplace(name, read_tensor(file, path, name, entry, data_begin, size - data_begin));
    }
  } catch (const json::exception& error) {
    detail::fail_at(path, fmt::format("its header is damaged: {}", error.what()));
  }
  return tensors;
}

}  // namespace distributed_utils

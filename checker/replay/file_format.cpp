#include "file_format.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace replay {

namespace {

namespace fs = std::filesystem;

// The reference reader refuses larger headers, and a damaged length must not make us allocate.
constexpr uint64_t kMaxHeader = 100'000'000;
constexpr size_t kLengthBytes = sizeof(uint64_t);

std::string begin_of(std::ifstream& stream, size_t size) {
  std::string bytes(size, '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(size));
  bytes.resize(static_cast<size_t>(stream.gcount()));
  return bytes;
}

// Tensors lie one behind the other. Returns where the last one ends, behind the header.
uint64_t end_of_tensors(const nlohmann::json& header) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    ranges.push_back(entry.at("data_offsets").get<std::pair<uint64_t, uint64_t>>());
  }
  std::ranges::sort(ranges);
  uint64_t at = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != at || end < begin) throw std::invalid_argument("gaps");
    at = end;
  }
  return at;
}

const char* format_with_header(std::ifstream& stream, uint64_t length, uint64_t behind) {
  if (behind < length) return "cut";
  const auto header = nlohmann::json::parse("{" + begin_of(stream, length - 1));
  const auto end = end_of_tensors(header);
  if (length + end == behind) return "safetensors";
  return length + end > behind ? "cut" : "other";
}

}  // namespace

const char* format_of(const fs::path& file) try {
  if (!fs::is_regular_file(file)) return "other";
  const uint64_t size = fs::file_size(file);
  if (size == 0) return "empty";
  std::ifstream stream(file, std::ios::binary);
  const auto begin = begin_of(stream, kLengthBytes + 1);
  if (begin.starts_with("PK\x03\x04")) return "archive";
  uint64_t length = 0;
  if (begin.size() <= kLengthBytes) return "other";
  std::memcpy(&length, begin.data(), kLengthBytes);
  if (length == 0 || length > kMaxHeader || begin.back() != '{') return "other";
  return format_with_header(stream, length, size - kLengthBytes);
} catch (const std::exception&) {
  return "other";  // its header is damaged, or nobody may read it
}

}  // namespace replay

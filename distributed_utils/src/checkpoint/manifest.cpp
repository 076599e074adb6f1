#include "checkpoint/manifest.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "files/file_error.hpp"
#include "files/sha256.hpp"

namespace distributed_utils::detail {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;

// The text ends with its own hash, so that every bit before it is covered, spaces and names too,
// and every bit from there on is known.
constexpr std::string_view kBeforeHash = ",\n \"sha256\": \"";
constexpr std::string_view kAfterHash = "\"\n}\n";
constexpr size_t kHashSize = 64;

json to_json(const Scalar& scalar) {
  if (const auto* real = std::get_if<double>(&scalar); real && !std::isfinite(*real)) {
    return {{"double", fmt::format("{}", *real)}};  // JSON has no infinity
  }
  return std::visit([](const auto& value) { return json(value); }, scalar);
}

Scalar scalar_from(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return value.get<double>();
  if (value.is_object()) return std::stod(value.at("double").get<std::string>());
  return value.get<int64_t>();
}

json to_json(const FileEntry& file) {
  return {{"name", file.name}, {"size", file.size}, {"sha256", file.sha256}};
}

json to_json(const TensorEntry& tensor) {
  return {{"file", tensor.file},     {"name", tensor.name},
          {"dtype", tensor.dtype},   {"global_shape", tensor.global_shape},
          {"offset", tensor.offset}, {"local_shape", tensor.local_shape}};
}

json to_json(const std::vector<FileEntry>& files) {
  json result = {{"files", json::array()}, {"tensors", json::array()}};
  for (const auto& file : files) {
    result["files"].push_back(to_json(file));
    for (const auto& tensor : file.tensors) result["tensors"].push_back(to_json(tensor));
  }
  return result;
}

TensorEntry tensor_from(const json& entry) {
  return {.file = entry.at("file"),
          .name = entry.at("name"),
          .dtype = entry.at("dtype"),
          .global_shape = entry.at("global_shape"),
          .offset = entry.at("offset"),
          .local_shape = entry.at("local_shape")};
}

std::vector<FileEntry> files_from(const json& from) {
  std::vector<FileEntry> files;
  for (const auto& entry : from.at("files")) {
    files.push_back({.name = entry.at("name"),
                     .size = entry.at("size"),
                     .sha256 = entry.at("sha256"),
                     .tensors = {}});
  }
  for (const auto& entry : from.at("tensors")) {
    const TensorEntry tensor = tensor_from(entry);
    for (auto& file : files) {
      if (file.name == tensor.file) file.tensors.push_back(tensor);
    }
  }
  return files;
}

Manifest manifest_from(const json& from, const std::filesystem::path& file) {
  if (from.at("format") != kFormat) {
    fail_at(file, fmt::format("has format {}, this version reads format {}. Fix: load it with the "
                              "version of distributed_utils that wrote it",
                              from.at("format").dump(), kFormat));
  }
  Manifest manifest = {.step = from.at("step"),
                       .world_size = from.at("world_size"),
                       .scalars = {},
                       .files = files_from(from),
                       .bucket_indices = from.at("bucket_indices"),
                       .sha256 = {}};
  for (const auto& [name, value] : from.at("scalars").items()) {
    manifest.scalars.emplace(name, scalar_from(value));
  }
  return manifest;
}

/// The hash that ends the text, if it is that of what comes before.
std::string checked_hash(std::string_view text, const std::filesystem::path& file) {
  const size_t tail = kBeforeHash.size() + kHashSize + kAfterHash.size();
  if (text.size() < tail || !text.ends_with(kAfterHash) ||
      text.substr(text.size() - tail, kBeforeHash.size()) != kBeforeHash) {
    fail_at(file, "is truncated or damaged: the end of the manifest is missing");
  }
  const auto hash = text.substr(text.size() - kAfterHash.size() - kHashSize, kHashSize);
  if (sha256(text.substr(0, text.size() - tail)) != hash) {
    fail_at(file, "is damaged: its contents do not match its own SHA-256");
  }
  return std::string(hash);
}

}  // namespace

std::string to_text(const Manifest& manifest) {
  json scalars = json::object();
  for (const auto& [name, scalar] : manifest.scalars) scalars[name] = to_json(scalar);
  json whole = to_json(manifest.files);
  whole.update({{"format", kFormat},
                {"step", manifest.step},
                {"world_size", manifest.world_size},
                {"scalars", scalars},
                {"bucket_indices", manifest.bucket_indices}});
  std::string text = whole.dump(1);
  text.resize(text.size() - std::string_view("\n}").size());
  const std::string hash = sha256(text);
  return fmt::format("{}{}{}{}", text, kBeforeHash, hash, kAfterHash);
}

Manifest manifest_from_text(std::string_view text, const std::filesystem::path& file) {
  const std::string hash = checked_hash(text, file);
  try {
    Manifest manifest = manifest_from(json::parse(text), file);
    manifest.sha256 = hash;
    return manifest;
  } catch (const json::exception& error) {
    fail_at(file, fmt::format("is not a manifest of a checkpoint: {}", error.what()));
  }
}

std::string to_text(const std::vector<FileEntry>& files) { return to_json(files).dump(); }

std::vector<FileEntry> files_from_text(const std::string& text) {
  return files_from(json::parse(text));
}

}  // namespace distributed_utils::detail

#include <torch/torch.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "distributed_utils/safetensors.hpp"
#include "distributed_utils/save.hpp"
#include "file_format.hpp"
#include "replay.hpp"
#include "saved.hpp"

namespace replay {

namespace {

// Into a fresh model, by whichever of the course's two formats the file has.
bool read_into(tasks::Model& model, const std::filesystem::path& file) {
  try {
    distributed_utils::load(model, file);
    return true;
  } catch (const std::exception&) {
  }
  try {
    torch::serialize::InputArchive archive;
    archive.load_from(file.string());
    model.load(archive);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void add_numbers(const nlohmann::json& node, Flat& all) {
  if (node.is_number_float()) all.push_back(node.get<double>());
  if (!node.is_structured()) return;
  for (const auto& part : node) add_numbers(part, all);
}

// A manifest, say.
std::optional<Flat> numbers_in_json(const std::filesystem::path& file) {
  std::ifstream stream(file);
  const auto content = nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!content.is_structured()) return std::nullopt;
  Flat all;
  add_numbers(content, all);
  return all;
}

std::optional<Flat> values_in(const std::filesystem::path& file) try {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : distributed_utils::load_file(file)) {
    if (tensor.is_floating_point()) tensors.push_back(tensor);
  }
  return flat(tensors);
} catch (const std::exception&) {
  return numbers_in_json(file);
}

}  // namespace

std::vector<SavedFile> saved_files(const std::filesystem::path& folder) {
  std::vector<SavedFile> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.is_symlink()) continue;
    files.push_back({entry.path(), entry.file_size(), values_in(entry.path())});
  }
  std::ranges::sort(files, {}, &SavedFile::path);
  return files;
}

nlohmann::json look_into(const tasks::Task& task, const std::filesystem::path& file,
                         const std::vector<std::pair<std::string, Flat>>& states,
                         const std::vector<checker::TensorSeen>& parameters) {
  const std::string format = format_of(file);
  nlohmann::json result = {{"file", file.string()}, {"format", format}, {"holds", "unreadable"}};
  const auto model = task.make_model();
  if (!read_into(*model, file)) {
    if (format == "archive")
      result["holds"] = "unreadable, an archive of torch::save and no safetensors";
    return result;
  }
  const auto values = flat(ordered_parameters(*model, parameters));
  result["holds"] = "other";
  for (const auto& [name, state] : states) {
    // The latest of equals: what is saved after an epoch without progress is that epoch's.
    if (deviation(values, state) < 1e-9) result["holds"] = name;
  }
  return result;
}

}  // namespace replay

#include <torch/torch.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

#include "distributed_utils/save.hpp"
#include "replay.hpp"

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

// What torch::save writes is a zip archive.
bool is_archive(const std::filesystem::path& file) {
  std::array<char, 2> begin{};
  std::ifstream(file, std::ios::binary).read(begin.data(), begin.size());
  return begin == std::array{'P', 'K'};
}

}  // namespace

nlohmann::json look_into(const tasks::Task& task, const std::filesystem::path& file,
                         const std::vector<std::pair<std::string, Flat>>& states,
                         const std::vector<checker::TensorSeen>& parameters) {
  nlohmann::json result = {{"file", file.string()}, {"holds", "unreadable"}};
  const auto model = task.make_model();
  if (!read_into(*model, file)) {
    if (is_archive(file))
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

#include "folders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "tasks/options.hpp"

namespace tasks::images {
namespace {

namespace fs = std::filesystem;

// Sorted, because folders list their entries in an order that differs from machine to machine.
std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::error_code failure;
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(folder, failure)) entries.push_back(entry.path());
  if (failure) {
    throw Error(
        fmt::format("{}: {}. --data takes a folder with train/<class>/*.JPEG and "
                    "val/<class>/*.JPEG.",
                    folder.string(), failure.message()));
  }
  std::ranges::sort(entries);
  return entries;
}

bool is_picture(const fs::path& file) {
  std::string ending = file.extension().string();
  for (char& letter : ending) letter = static_cast<char>(std::tolower(letter));
  return ending == ".jpeg" || ending == ".jpg";
}

std::vector<std::string> find_classes(const fs::path& train) {
  std::vector<std::string> classes;
  for (const auto& entry : sorted_entries(train)) {
    if (fs::is_directory(entry)) classes.push_back(entry.filename().string());
  }
  return classes;
}

std::vector<Picture> pictures_in(const fs::path& split, const std::vector<std::string>& classes) {
  std::vector<Picture> pictures;
  for (const auto& folder : sorted_entries(split)) {
    if (!fs::is_directory(folder)) continue;
    const auto found = std::ranges::find(classes, folder.filename().string());
    if (found == classes.end()) {
      throw Error(fmt::format("{}: train has no class of this name, so the model cannot learn it",
                              folder.string()));
    }
    for (const auto& file : sorted_entries(folder)) {
      if (is_picture(file)) pictures.push_back({file, found - classes.begin()});
    }
  }
  if (pictures.empty()) {
    throw Error(fmt::format("{}: no pictures (*.JPEG) in its folders; is the download complete?",
                            split.string()));
  }
  return pictures;
}

}  // namespace

const std::vector<Picture>& Folders::split(std::string_view name) const {
  return name == "train" ? train : name == "validation" ? validation : test;
}

Folders find_pictures(const fs::path& folder) {
  Folders found;
  found.classes = find_classes(folder / "train");
  found.train = pictures_in(folder / "train", found.classes);
  found.validation = pictures_in(folder / "val", found.classes);
  found.test =
      fs::exists(folder / "test") ? pictures_in(folder / "test", found.classes) : found.validation;
  return found;
}

}  // namespace tasks::images

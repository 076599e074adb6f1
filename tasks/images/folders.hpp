#pragma once
/// Pictures in folders named after their classes, as ImageNet and ImageWoof come.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tasks::images {

struct Picture {
  std::filesystem::path file;
  int64_t label;  ///< the place of its class in Folders::classes
};

struct Folders {
  std::vector<std::string> classes;  ///< names of the folders, sorted
  std::vector<Picture> train, validation, test;

  const std::vector<Picture>& split(std::string_view name) const;
};

/// Finds the pictures *.jpeg and *.jpg, in small or capital letters, in
/// <folder>/train/<class>, <folder>/val/<class> and <folder>/test/<class>, in the order of their
/// names. Where there is no test folder, as in ImageWoof, the test pictures are those of val.
/// Throws Error for a folder that is missing or has no picture, and for a class that is not in
/// train.
Folders find_pictures(const std::filesystem::path& folder);

}  // namespace tasks::images

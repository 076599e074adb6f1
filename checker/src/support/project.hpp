#pragma once
/// Where things are.
#include <filesystem>
#include <map>
#include <string>

namespace checker {

struct Project {
  std::filesystem::path source;  ///< the folder that holds steps/ and checker/
  std::filesystem::path build;   ///< the build folder that this program lies in
  std::string cmake = "cmake";
  std::string ctest = "ctest";
  std::string ninja = "ninja";

  std::filesystem::path ladder() const { return source / "checker" / "ladder"; }
  /// A path as people say it: from the project's folder if it lies in there.
  std::string shown(const std::filesystem::path& path) const;
};

/// The entries of a build folder's CMakeCache.txt, by name; none if there is no such file.
std::map<std::string, std::string> cmake_cache(const std::filesystem::path& build);

/// The project whose build folder this program lies in (<build>/bin/checker). Throws Error if it
/// lies in none.
Project find_project();

}  // namespace checker

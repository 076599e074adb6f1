#pragma once
/// The folders of the project.
#include <filesystem>
#include <string>

namespace checker {

struct Project {
  std::filesystem::path source;  ///< the folder that holds steps/ and checker/
  std::filesystem::path build;   ///< the build folder that this program lies in
  std::string cmake = "cmake";
  std::string ctest = "ctest";
  std::string ninja = "ninja";

  std::filesystem::path chapters() const { return source / "checker" / "chapters"; }
  /// The library to preload into ranks that share a folder.
  std::filesystem::path file_shim() const { return build / "lib" / "libfile_shim.so"; }
  /// A path as people say it: from the project's folder if it lies in there.
  std::string shown(const std::filesystem::path& path) const;
};

/// The entry of this name in the build's CMakeCache.txt; empty if there is none.
std::string cached(const Project& project, const std::string& name);

/// The project whose build folder this program lies in (<build>/bin/checker). Throws Error if it
/// lies in none.
Project find_project();

}  // namespace checker

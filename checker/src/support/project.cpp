#include "support/project.hpp"

#include <map>

#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

// The entries of a build folder's CMakeCache.txt, by name; none if there is no such file.
std::map<std::string, std::string> cmake_cache(const fs::path& build) {
  const auto file = build / "CMakeCache.txt";
  std::map<std::string, std::string> entries;
  if (!fs::exists(file)) return entries;
  for (const auto& line : split_lines(read_file(file))) {
    const auto colon = line.find(':'), equals = line.find('=');  // NAME:TYPE=value
    if (colon < equals && equals != line.npos) {
      entries[line.substr(0, colon)] = line.substr(equals + 1);
    }
  }
  return entries;
}

}  // namespace

std::string Project::shown(const fs::path& path) const {
  return lies_in(path, source) ? path.lexically_relative(source).string() : path.string();
}

std::string cached(const Project& project, const std::string& name) {
  const auto cache = cmake_cache(project.build);
  const auto entry = cache.find(name);
  return entry == cache.end() ? "" : entry->second;
}

Project find_project() {
  const auto program = fs::read_symlink("/proc/self/exe");
  Project project;
  project.build = program.parent_path().parent_path();
  if (!fs::exists(project.build / "CMakeCache.txt")) {
    throw Error(program.string() + " is not in a build folder. Fix: ./workbook build");
  }
  const auto cache = cmake_cache(project.build);
  const auto take = [&](const char* name, auto& value) {
    const auto entry = cache.find(name);
    if (entry != cache.end() && !entry->second.empty()) value = entry->second;
  };
  take("CMAKE_HOME_DIRECTORY", project.source);
  take("CMAKE_COMMAND", project.cmake);
  take("CMAKE_CTEST_COMMAND", project.ctest);
  take("CMAKE_MAKE_PROGRAM", project.ninja);
  return project;
}

}  // namespace checker

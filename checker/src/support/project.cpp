#include "support/project.hpp"

#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {

namespace fs = std::filesystem;

std::string Project::shown(const fs::path& path) const {
  const auto relative = path.lexically_relative(source);
  return relative.empty() || *relative.begin() == ".." ? path.string() : relative.string();
}

Project find_project() {
  const auto program = fs::read_symlink("/proc/self/exe");
  Project project;
  project.build = program.parent_path().parent_path();
  const auto cache = project.build / "CMakeCache.txt";
  if (!fs::exists(cache)) {
    throw Error(program.string() + " does not lie in a build folder. Mend: ./workbook build");
  }
  for (const auto& line : split_lines(read_file(cache))) {
    const auto value = [&](std::string_view name) {
      return line.starts_with(name) ? line.substr(line.find('=') + 1) : std::string();
    };
    if (const auto text = value("CMAKE_HOME_DIRECTORY:"); !text.empty()) project.source = text;
    if (const auto text = value("CMAKE_COMMAND:"); !text.empty()) project.cmake = text;
    if (const auto text = value("CMAKE_CTEST_COMMAND:"); !text.empty()) project.ctest = text;
    if (const auto text = value("CMAKE_MAKE_PROGRAM:"); !text.empty()) project.ninja = text;
  }
  return project;
}

}  // namespace checker

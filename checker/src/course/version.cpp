#include "course/version.hpp"

#include "course/course.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {

std::string course_version(const Project& project) {
  std::string all = read_file(project.chapters() / "order.yaml");
  for (const auto& chapter : load_course(project.chapters()).chapters) {
    all += read_file(chapter.folder / "chapter.yaml");
    for (const auto& file : chapter.files) all += read_file(chapter.folder / file.name);
  }
  const auto version = cached(project, "CMAKE_PROJECT_VERSION");
  return (version.empty() ? "0" : version) + "-" + fingerprint(all).substr(0, 8);
}

}  // namespace checker

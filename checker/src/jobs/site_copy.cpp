#include "jobs/site_copy.hpp"

#include "course/render.hpp"
#include "support/files.hpp"

namespace checker {

namespace fs = std::filesystem;

void make_course(const fs::path& folder, const Course& course, const std::string& site_conf,
                 const fs::path& venv,
                 const std::function<fs::path(const std::string& name)>& program) {
  for (const auto& [file, text] : render_all(course)) {
    if (file.extension() == ".sbatch") write_file(folder / file, text);
  }
  write_file(folder / "sbatch" / "site.conf", site_conf);
  fs::create_directory_symlink(venv, folder / ".venv");
  const auto bin = folder / "build" / "cpu" / "bin";
  fs::create_directories(bin);
  for (const auto& step : course.steps) {
    for (const std::string kind : {"step_", "solution_"}) {
      const auto name = kind + step.label();
      if (const auto file = program(name); !file.empty()) fs::create_symlink(file, bin / name);
    }
  }
}

}  // namespace checker

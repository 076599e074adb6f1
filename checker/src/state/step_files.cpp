#include "state/step_files.hpp"

#include "ladder/render.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

const fs::path trainer_name = "train.cpp";

fs::path trainer_file(const Step& step) { return fs::path("steps") / step.name / trainer_name; }
fs::path job_file(const Step& step) { return fs::path("sbatch") / (step.name + ".sbatch"); }

// The reference starts its own program; the student's file starts the student's.
std::string solved_text(const Ladder& ladder, const Source& source, const Step& step) {
  return replaced(render(ladder, source, step, Rendering::solution), "bin/solution_", "bin/step_");
}

}  // namespace

std::vector<StepFile> step_files(const Ladder& ladder, const Step& step) {
  const auto solutions = fs::path("solutions") / step.name;
  const auto make = [&](const Source& source, const fs::path& path) {
    return StepFile{path, solutions / path.filename(), source.comment(),
                    render(ladder, source, step, Rendering::step),
                    solved_text(ladder, source, step)};
  };
  std::vector<StepFile> files{make(ladder.trainer, trainer_file(step))};
  if (ladder.edits_job(step)) files.push_back(make(ladder.job, job_file(step)));
  return files;
}

std::vector<fs::path> step_paths(const Ladder& ladder, const Step& step) {
  if (ladder.edits_job(step)) return {job_file(step), trainer_file(step)};
  return {trainer_file(step)};
}

std::string fingerprint_of(const Project& project, const fs::path& file) try {
  return fingerprint(read_file(project.source / file));
} catch (const Error&) {
  return "";
}

Fingerprints take_fingerprints(const Project& project, const Ladder& ladder, const Step& step) {
  Fingerprints fingerprints;
  for (const auto& path : step_paths(ladder, step)) {
    fingerprints[path] = fingerprint_of(project, path);
  }
  return fingerprints;
}

}  // namespace checker

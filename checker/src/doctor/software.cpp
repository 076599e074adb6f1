#include <filesystem>

#include "course/programs.hpp"
#include "doctor/doctor.hpp"
#include "doctor/look_up.hpp"
#include "jobs/torchrun.hpp"
#include "support/text.hpp"

namespace checker::doctor {

namespace fs = std::filesystem;

namespace {

HealthCheck compiler(const Place& place) {
  const auto program = cached(place.project, "CMAKE_CXX_COMPILER");
  const auto said = answer_of({program, "--version"});
  if (said) return {"compiler", Health::good, split_lines(*said).front()};
  if (place.compute_node)
    return {"compiler", Health::absent, "none, and a compute node needs none"};
  return {"compiler", Health::bad,
          (program.empty() ? "the build's compiler" : program) + " does not answer",
          "sudo apt-get install clang; on a cluster, load the same modules as at set-up."};
}

HealthCheck libtorch(const Place& place) {
  const fs::path root = cached(place.project, "LIBTORCH_ROOT");
  const auto header = root / "include/torch/headeronly/version.h";
  const auto version = version_in(header, "TORCH_VERSION_");
  if (fs::exists(root / "lib/libtorch_cpu.so")) {
    return {"LibTorch", Health::good, version + ", " + root.string()};
  }
  return {"LibTorch", Health::bad, root.string() + " is gone",
          "./workbook start installs it again."};
}

// Steps that cannot be submitted, because their programs were not built.
HealthCheck programs(const Place& place) {
  const auto course = load_course(place.project.chapters());
  std::vector<std::string> missing;
  for (const auto& step : course.steps) {
    if (step.is_beside()) continue;  // nobody submits it
    if (!fs::exists(find_program(place.project, step, false).file)) missing.push_back(step.label());
  }
  if (missing.empty()) return {"programs", Health::good, "all steps are built"};
  return {"programs", place.compute_node ? Health::bad : Health::absent,
          "not built: steps " + join(missing, ", "),
          place.compute_node ? "on the login node: ./workbook build"
                             : "before you submit: ./workbook build"};
}

HealthCheck torchrun(const Place& place) {
  const auto own = own_torchrun(place.project);
  const auto why = why_not_running(own);
  if (!why) return {"torchrun", Health::good, own.string()};
  if (!why_not_running("torchrun")) return {"torchrun", Health::good, "the one in PATH"};
  return {"torchrun", Health::absent, "does not run: " + *why,
          std::string("Job scripts need it. Install what it needs: ") +
              (place.compute_node ? "on the login node, " : "") + "./workbook prefetch"};
}

}  // namespace

std::vector<HealthCheck> examine_software(const Place& place) {
  return {compiler(place), libtorch(place), programs(place), torchrun(place)};
}

}  // namespace checker::doctor

#include <filesystem>

#include "doctor/doctor.hpp"
#include "doctor/look_up.hpp"
#include "process/gpus.hpp"
#include "support/text.hpp"

namespace checker::doctor {

namespace fs = std::filesystem;

namespace {

// The oldest driver that CUDA 13.0 runs on: table 3 of
// docs.nvidia.com/cuda/cuda-toolkit-release-notes.
constexpr const char* kLeastDriver = "580.65.06";

HealthCheck toolkit(const Project& project) {
  const auto program = cached(project, "CMAKE_CUDA_COMPILER");
  const auto said = answer_of({program.empty() ? "nvcc" : program, "--version"});
  const auto version = said ? version_behind(*said, "release") : "";
  if (version.starts_with("13.")) {
    return {"CUDA", Health::good, version + ", " + (program.empty() ? "in PATH" : program)};
  }
  return {"CUDA", Health::bad, version.empty() ? "no nvcc" : version + ", but LibTorch has 13",
          "./workbook start --cuda installs the toolkit; on a cluster: module load CUDA/13"};
}

HealthCheck nccl(const Project& project) {
  const auto header = fs::path(cached(project, "NCCL_INCLUDE_DIR")) / "nccl.h";
  const auto version = version_in(header, "NCCL_");
  if (version.size() > 2) return {"NCCL", Health::good, version};
  return {"NCCL", Health::bad, header.string() + " is not there", "./workbook start --cuda"};
}

HealthCheck driver(const std::string& version) {
  if (at_least(version, kLeastDriver)) return {"driver", Health::good, version};
  return {"driver", Health::bad, version + ", and CUDA 13 needs " + kLeastDriver,
          "ask the administrator for a newer driver; until then add --cpu to every command."};
}

HealthCheck seen(const std::vector<std::string>& names) {
  const size_t visible = gpus_here();
  auto text = std::to_string(names.size()) + " x " + names.front();
  if (visible == names.size()) return {"GPUs", Health::good, text};
  return {"GPUs", Health::bad, text + ", programs see " + std::to_string(visible),
          "CUDA_VISIBLE_DEVICES hides the others; unset it, or ask Slurm for all: --gres=gpu:" +
              std::to_string(names.size())};
}

}  // namespace

std::vector<HealthCheck> examine_gpus(const Place& place) {
  const bool for_gpus = cached(place.project, "WORLDSIZE_CUDA") == "ON";
  std::vector<HealthCheck> checks;
  if (for_gpus) {
    if (!place.compute_node) checks.push_back(toolkit(place.project));
    checks.push_back(nccl(place.project));
  }
  const auto said =
      answer_of({"nvidia-smi", "--query-gpu=driver_version,name", "--format=csv,noheader"});
  if (!said || said->empty()) {
    // A login node often has none, and a laptop neither.
    checks.push_back({"GPUs", for_gpus && place.compute_node ? Health::bad : Health::absent,
                      "none; ranks run on the CPU, over Gloo",
                      for_gpus && place.compute_node ? "ask Slurm for them: --gres=gpu:4" : ""});
    return checks;
  }
  std::vector<std::string> names;
  for (const auto& line : split_lines(*said)) {
    names.emplace_back(trim(line.substr(std::min(line.find(',') + 1, line.size()))));
  }
  checks.push_back(driver(version_behind(*said, "")));
  checks.push_back(seen(names));
  if (!for_gpus) {
    checks.push_back({"build", Health::bad, "for CPUs, on a machine with GPUs",
                      "./workbook start --cuda, then add --cuda to every command"});
  }
  return checks;
}

}  // namespace checker::doctor

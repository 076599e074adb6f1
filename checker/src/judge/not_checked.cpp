#include "judge/not_checked.hpp"

#include "course/render.hpp"
#include "judge/run_context.hpp"

namespace checker {

std::vector<std::string> not_checked_on(std::string_view device, const Course& course,
                                        const Step& step) {
  if (step.is_beside()) return {};
  if (device == "cpu") return {"GPUs and NCCL: this check ran on CPUs, over Gloo"};
  std::vector<std::string> lines{"several nodes: here each local rank equals its rank"};
  const auto features = features_until(course, step, Rendering::solution);
  if (features.contains(std::string(feature::fsdp))) {
    lines.emplace_back("memory: only a check on CPUs counts it");
  }
  return lines;
}

}  // namespace checker

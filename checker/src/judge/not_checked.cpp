#include "judge/not_checked.hpp"

#include <algorithm>

#include "course/render.hpp"
#include "judge/run_context.hpp"

namespace checker {

namespace {

std::vector<std::string> not_checked_on_cpus(const Course& course, const Step& step) {
  std::vector<std::string> lines{"GPUs and NCCL: this check ran on CPUs, over Gloo"};
  // The run is told what setup() would choose by itself on CPUs.
  const auto sets_up = [&](int todo) {
    const auto& features = course.todos.at(todo).features;
    return std::ranges::find(features, feature::setup) != features.end();
  };
  if (std::ranges::any_of(step.todos, sets_up)) {
    lines.emplace_back(
        "other values of --device and --backend: a setup() with these two typed in passes here");
  }
  return lines;
}

}  // namespace

std::vector<std::string> not_checked_on(std::string_view device, const Course& course,
                                        const Step& step) {
  if (step.is_beside()) return {};
  if (device == "cpu") return not_checked_on_cpus(course, step);
  std::vector<std::string> lines{"several nodes: here each local rank equals its rank"};
  const auto features = features_until(course, step, Rendering::solution);
  if (features.contains(std::string(feature::fsdp))) {
    lines.emplace_back("memory: only a check on CPUs counts it");
  }
  return lines;
}

}  // namespace checker

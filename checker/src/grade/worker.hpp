#pragma once
/// Judges what one student handed in, in a process of its own.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "box/box.hpp"
#include "grade/hand_in_build.hpp"
#include "support/project.hpp"

namespace checker::grade {

struct Task {
  std::filesystem::path hand_in;
  bool archive = false;
  std::filesystem::path work;      ///< an empty folder
  std::filesystem::path programs;  ///< see BuildRequest
  std::vector<std::filesystem::path> hidden;
  std::vector<std::string> done;  ///< steps that need not be judged again
  uint32_t user = 0;
  bool unsafe = false;           ///< without a box
  uint64_t memory = 6ULL << 30;  ///< bytes of all its processes together
  BoxLimits running = {}, building = kBuilding;
  Protections protections = {};
  std::vector<int> worlds = {};
  /// Takes one line of JSON: {"gathered": ...}, {"stage": ...}, {"report": ...}, at last
  /// {"finished": true} with "problem" where the hand-in cannot be read.
  std::function<void(const std::string& line)> say;
};

/// From here on the process has mounts and a network of its own, unless the task is unsafe. False
/// if a step could not be judged, which standard error tells. Throws Error where nothing can be.
bool work_on(const Project& project, const Task& task);

}  // namespace checker::grade

#include "course/programs.hpp"

namespace checker {

Program find_program(const Project& project, const Step& step, bool solution) {
  const std::string target = (solution ? "solution_" : "step_") + step.label();
  return {target, project.build / "bin" / target,
          project.build / "runs" / (step.name + (solution ? "-solution" : ""))};
}

}  // namespace checker

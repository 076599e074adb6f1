#include "judge/judging.hpp"

namespace checker {

Judge judge_of(const Project& project) {
  return [&project](const Course& course, const Step& step, const CheckOptions& options) {
    return check_step(project, course, step, options);
  };
}

}  // namespace checker

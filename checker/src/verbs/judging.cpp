#include "verbs/judging.hpp"

namespace checker {

Judge judge_of(const Project& project) {
  return [&project](const Ladder& ladder, const Step& step, const CheckOptions& options) {
    return check_step(project, ladder, step, options);
  };
}

}  // namespace checker

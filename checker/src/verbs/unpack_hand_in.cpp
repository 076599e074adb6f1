// Grading's reader of archives, which runs in a box: nothing else is in sight of it.
#include "grade/gather.hpp"
#include "support/error.hpp"
#include "verbs/verbs.hpp"

namespace checker {

int run_unpack_hand_in(const Project& /*project*/, const Arguments& arguments) {
  if (arguments.size() < 2) throw UsageError("Usage: ARCHIVE FOLDER STEP/FILE...");
  std::vector<grade::GradedStep> steps;
  for (const auto& word : Arguments(arguments.begin() + 2, arguments.end())) {
    const auto slash = word.find('/');
    if (slash == word.npos) throw UsageError("'" + word + "' is not a STEP/FILE.");
    const auto step = word.substr(0, slash);
    if (steps.empty() || steps.back().name != step) steps.push_back({step, {}});
    steps.back().files.push_back(word.substr(slash + 1));
  }
  grade::write_gathered(grade::gather_archive(arguments[0], steps), arguments[1]);
  return 0;
}

}  // namespace checker

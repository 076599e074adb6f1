// Grading's reader of archives, which runs in a box: nothing else is in sight of it.
#include "grade/gather.hpp"
#include "support/error.hpp"
#include "verbs/verbs.hpp"

namespace checker {

int run_unpack_hand_in(const Project& /*project*/, const Arguments& arguments) {
  if (arguments.size() < 2) throw UsageError("Wanted: ARCHIVE FOLDER STEP...");
  const Arguments steps(arguments.begin() + 2, arguments.end());
  grade::write_gathered(grade::gather_archive(arguments[0], steps), arguments[1]);
  return 0;
}

}  // namespace checker

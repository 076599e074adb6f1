// Where the libraries that grading needs were not found.
#include "support/error.hpp"
#include "verbs/verbs.hpp"

namespace checker {

int run_grade(const Project& /*project*/, const Arguments& /*arguments*/) {
  throw Error(
      "This checker was built without grading, because SQLite or libarchive was missing. Fix: sudo "
      "apt-get install libsqlite3-dev libarchive-dev bubblewrap, then ./workbook build");
}

int run_judge_hand_in(const Project& project, const Arguments& arguments) {
  return run_grade(project, arguments);
}

int run_unpack_hand_in(const Project& project, const Arguments& arguments) {
  return run_grade(project, arguments);
}

}  // namespace checker

// What takes the place of torchrun and of the trainer, in a job that is to get a signal.
#include "jobs/stand_in.hpp"

#include "support/error.hpp"
#include "verbs/verbs.hpp"

namespace checker {

int run_stand_in(const Project& /*project*/, const Arguments& arguments) {
  if (arguments.size() == 2 && arguments[0] == "rank") return stand_in_for_rank(arguments[1]);
  if (arguments.empty() || arguments[0] != "torchrun") {
    throw UsageError("expected rank FILE, or torchrun and its arguments.");
  }
  return stand_in_for_torchrun(std::span(arguments).subspan(1));
}

}  // namespace checker

#include "doctor/doctor.hpp"

#include <algorithm>

#include "report/look.hpp"
#include "support/text.hpp"
#include "verbs/options.hpp"

namespace checker {

namespace {

using doctor::Health;
using doctor::HealthCheck;

State state_of(Health health) {
  if (health == Health::absent) return State::not_judged;
  return health == Health::good ? State::done : State::wrong;
}

void print(const HealthCheck& check, const Look& look) {
  constexpr size_t kWide = 10, kIndent = 6 + kWide;
  auto subject = check.subject;
  subject.resize(std::max(kWide, subject.size()), ' ');
  const auto found = hanging_line(check.found, kIndent, look);
  for (size_t i = 0; i < found.size(); ++i) {
    terminal::say(i == 0 ? "  " + mark(state_of(check.health), look) + " " + subject + "  " +
                               found[i].substr(kIndent)
                         : found[i]);
  }
  if (check.fix.empty()) return;
  const std::string begin = check.health == Health::bad ? "Fix: " : "";
  for (const auto& line : hanging_line(begin + check.fix, kIndent, look)) {
    terminal::say(look.styled(terminal::Style::dim, line));
  }
}

}  // namespace

int run_doctor(const Project& project, const Arguments& arguments) {
  const cxxopts::Options options("./workbook doctor",
                                 "Checks this machine and says how to fix what is wrong.\n");
  if (!parse(options, "",
             "Run it on the login node and in a job:  srun --gres=gpu:1 ./workbook doctor\n",
             arguments)) {
    return 0;
  }
  const auto place = doctor::this_place(project);
  const auto look = present_look();
  terminal::say(place.compute_node ? "This is a compute node, in a Slurm job:"
                                   : "This is a login node or your own machine:");
  size_t bad = 0;
  std::vector<std::string> absent;
  for (const auto examine : {doctor::examine_software, doctor::examine_gpus,
                             doctor::examine_cluster, doctor::examine_machine}) {
    for (const auto& check : examine(place)) {
      print(check, look);
      if (check.health == Health::bad) ++bad;
      if (check.health == Health::absent) absent.push_back(check.subject);
    }
  }
  if (bad > 0) {
    terminal::say(count_of(bad, "problem") + " to fix.");
  } else if (absent.empty()) {
    terminal::say("Everything is fine.");
  } else {
    terminal::say("Nothing is broken. Not available here: " + join(absent, ", ") + ".");
  }
  return bad == 0 ? 0 : 1;
}

}  // namespace checker

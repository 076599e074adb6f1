#include "report/step_diff.hpp"

#include "support/error.hpp"
#include "terminal/terminal.hpp"
#include "verbs/options.hpp"
#include "verbs/todos.hpp"

namespace checker {

int run_diff(const Project& project, const Arguments& arguments) {
  cxxopts::Options options(
      "./workbook diff", "Shows the solution: what differs between your file and the reference.\n");
  options.add_options("hidden")("step", "", cxxopts::value<std::vector<std::string>>());
  options.parse_positional({"step"});
  const auto parsed = parse(options, "NN",
                            "Comments and empty lines make no difference. There are other correct "
                            "ways: what differs\nneed not be wrong. ./workbook check judges.",
                            arguments);
  if (!parsed) return 0;
  if (!parsed->count("step")) throw UsageError("Which step? For example: ./workbook diff 02.");

  const auto course = load_course(project.chapters());
  const auto& step = named_step(course, (*parsed)["step"].as<std::vector<std::string>>());
  for (const auto& line : step_diff(project, course, step, present_look())) terminal::say(line);
  return 0;
}

}  // namespace checker

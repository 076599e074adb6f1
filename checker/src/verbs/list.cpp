#include "ladder/ladder.hpp"
#include "terminal/terminal.hpp"
#include "verbs/options.hpp"

namespace checker {

int run_list(const Project& project, const Arguments& arguments) {
  const cxxopts::Options options("./workbook list", "Shows the steps and their TODOs.\n");
  if (!parse(options, "", "", arguments)) return 0;

  const auto ladder = load_ladder(project.ladder());
  for (const auto& step : ladder.steps) {
    std::string name = step.name;
    name.resize(20, ' ');
    terminal::say(terminal::styled(terminal::Style::bold, name) + step.title);
    for (const int number : step.todos) {
      const auto digits = std::to_string(number);
      terminal::say("    TODO " + digits + std::string(4 - digits.size(), ' ') +
                    ladder.todos.at(number).title);
    }
  }
  return 0;
}

}  // namespace checker

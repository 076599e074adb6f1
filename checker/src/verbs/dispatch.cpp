#include <algorithm>
#include <array>
#include <exception>

#include "support/error.hpp"
#include "support/text.hpp"
#include "terminal/terminal.hpp"
#include "verbs/verbs.hpp"

namespace checker {

namespace {

constexpr std::array<Verb, 31> table{
    {{"start", "set everything up, train the first step and say what to do next", run_start},
     {"watch", "check a step every time you save it", run_watch},
     {"check", "check a step: which TODOs are done, what is wrong, and why", run_check},
     {"hint", "give a hint on one TODO", run_hint},
     {"slides", "build and serve the slides, or open the one about a TODO", run_slides},
     {"diff", "show the answer to a TODO, or how your file differs from the solution", run_diff},
     {"reset", "restore the original step and save yours, or bring yours back", run_reset},
     {"upgrade", "take the newest version of the course, and keep your edits", run_upgrade},
     {"list", "show the steps and the state of their TODOs", run_list},
     {"progress", "show how far you are", run_progress},
     {"quiz", "answer questions about programs, and see them run", run_quiz},
     {"challenge", "write the trainer yourself, without TODOs", run_challenge},
     {"run", "build one step and run its ranks on this machine", run_step},
     {"monitor", "show what a run did, what it used and what limits it", run_monitor},
     {"data", "fetch real data sets for the tasks, or list them", run_data},
     {"submit", "submit a step's job script to Slurm and follow the job", run_submit},
     {"pack", "pack your work to hand it in", run_pack},
     {"site", "print the site file's settings for sbatch", run_site},
     {"doctor", "check this machine and say how to fix what is wrong", run_doctor},
     {"lab", "start a Slurm of your own on this machine, to try job scripts", run_lab},
     {"test", "build everything and run all tests", run_test},
     {"grade", "grade a class: check each hand-in in a box, and report", run_grade},
     {"verify", "test the checker on a catalogue of right and wrong programs", run_verify},
     {"endure", "kill runs and damage checkpoints, to test recovery", run_endure},
     {"golden", "check that solutions compute the same as before", run_golden},
     {"bench", "time training steps and compare them with Python", run_bench},
     {"render", "write steps, solutions and job scripts from the chapters", run_render},
     {"judge-hand-in", "", run_judge_hand_in},
     {"run-jobs", "", run_jobs},
     {"stand-in", "", run_stand_in},
     {"unpack-hand-in", "", run_unpack_hand_in}}};

void print_help() {
  terminal::say("Worldsize, the C++ workbook for distributed deep learning.\n");
  terminal::say("Usage: ./workbook COMMAND [options]\n");
  for (const auto& verb : table) {
    if (verb.summary.empty()) continue;
    std::string name(verb.name);
    name.resize(10, ' ');
    terminal::say("  " + terminal::styled(terminal::Style::bold, name) + std::string(verb.summary));
  }
  terminal::say("\n./workbook COMMAND --help tells more about one of them.");
}

const Verb& find_verb(const std::string& name) {
  const auto verb = std::ranges::find(table, name, &Verb::name);
  if (verb != table.end()) return *verb;
  std::vector<std::string> names;
  for (const auto& known : table) {
    if (!known.summary.empty()) names.emplace_back(known.name);
  }
  const auto guess = did_you_mean(name, names);
  throw UsageError("Unknown command '" + name + "'" + (guess.empty() ? "." : guess));
}

}  // namespace

std::span<const Verb> verbs() { return table; }

int dispatch(const Arguments& command_line) {
  if (command_line.empty() || command_line[0] == "--help" || command_line[0] == "-h" ||
      command_line[0] == "help") {
    print_help();
    return command_line.empty() ? 2 : 0;
  }
  std::string help = "./workbook --help";
  try {
    const auto& verb = find_verb(command_line[0]);
    help = "./workbook " + std::string(verb.name) + " --help";
    const Arguments rest(command_line.begin() + 1, command_line.end());
    return verb.run(find_project(), rest);
  } catch (const UsageError& error) {
    terminal::complain(std::string(error.what()) + " See " + help);
    return 2;
  } catch (const std::exception& error) {
    terminal::complain(error.what());
    return 1;
  }
}

}  // namespace checker

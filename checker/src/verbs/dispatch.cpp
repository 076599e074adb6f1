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
     {"watch", "judge a step again whenever you save it", run_watch},
     {"check", "judge a step: which TODOs are done, what is wrong, and why", run_check},
     {"hint", "give a hint on one TODO", run_hint},
     {"slides", "build and serve the slides, or open the one about a TODO", run_slides},
     {"diff", "show the answer to a TODO, or how your file differs from the solution", run_diff},
     {"reset", "restore the original step and save yours, or bring yours back", run_reset},
     {"upgrade", "take the newest version of the course, and keep your edits", run_upgrade},
     {"list", "show the steps and how their TODOs stand", run_list},
     {"progress", "show how far you are", run_progress},
     {"quiz", "predict what programs do, and see them run", run_quiz},
     {"challenge", "hand out the serial trainer without TODOs, and judge what you make of it",
      run_challenge},
     {"run", "build one step and run its ranks on this machine", run_step},
     {"monitor", "show what a run did and used, and what limits it", run_monitor},
     {"data", "fetch real data sets for the tasks, or list them", run_data},
     {"submit", "submit a step's job script to Slurm and follow the job", run_submit},
     {"pack", "pack your work, to hand it in", run_pack},
     {"site", "print the site file's settings for sbatch", run_site},
     {"doctor", "look whether this machine is fit for the course", run_doctor},
     {"lab", "start a Slurm of your own on this machine, to rehearse job scripts", run_lab},
     {"test", "build everything and run all tests", run_test},
     {"grade", "judge a class's hand-ins, each in a box, and report", run_grade},
     {"verify", "judge the catalogue of wrong edits: is the judge right?", run_verify},
     {"endure", "kill runs and damage checkpoints: does training survive?", run_endure},
     {"golden", "compare what solutions compute with what they did before", run_golden},
     {"bench", "time training steps beside Python's, on one rank and on more", run_bench},
     {"render", "make steps, solutions and job scripts from the course", run_render},
     {"judge-hand-in", "", run_judge_hand_in},
     {"run-jobs", "", run_jobs},
     {"stand-in", "", run_stand_in},
     {"unpack-hand-in", "", run_unpack_hand_in}}};

void print_help() {
  terminal::say("Worldsize, the C++ workbook for distributed deep learning.\n");
  terminal::say("Usage: ./workbook VERB [options]\n");
  for (const auto& verb : table) {
    if (verb.summary.empty()) continue;
    std::string name(verb.name);
    name.resize(10, ' ');
    terminal::say("  " + terminal::styled(terminal::Style::bold, name) + std::string(verb.summary));
  }
  terminal::say("\n./workbook VERB --help says more about one of them.");
}

const Verb& find_verb(const std::string& name) {
  const auto verb = std::ranges::find(table, name, &Verb::name);
  if (verb != table.end()) return *verb;
  std::vector<std::string> names;
  for (const auto& known : table) {
    if (!known.summary.empty()) names.emplace_back(known.name);
  }
  const auto guess = did_you_mean(name, names);
  throw UsageError("There is no verb " + name + (guess.empty() ? "." : guess));
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

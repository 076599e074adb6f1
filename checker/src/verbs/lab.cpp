#include "lab/lab.hpp"

#include <array>
#include <cstdlib>

#include "lab/impossible.hpp"
#include "lab/registry.hpp"
#include "support/error.hpp"
#include "support/text.hpp"
#include "terminal/terminal.hpp"
#include "verbs/options.hpp"

namespace checker {

namespace {

struct Call {
  const cxxopts::ParseResult& options;
  Arguments words;    ///< after the action
  Arguments command;  ///< after --

  std::string word(size_t number) const { return number < words.size() ? words[number] : ""; }
  std::string node() const {
    expect_at_most(2);
    if (words.empty()) throw UsageError("Which node? For example: ./workbook lab kill n1.");
    return words.front();
  }
  void expect_at_most(size_t count) const {
    if (words.size() > count) {
      throw UsageError("\"" + words[count] + "\" is an extra argument.");
    }
  }
};

std::string bold(const std::string& text) { return terminal::styled(terminal::Style::bold, text); }

int up(const Call& call) {
  call.expect_at_most(1);
  LabOptions options;
  options.name = call.word(0);
  options.nodes = call.options["nodes"].as<size_t>();
  options.gpus_per_node = call.options["gpus"].as<size_t>();
  options.partitions = call.options["partition"].as<std::vector<std::string>>();
  options.reservation = call.options["reservation"].as<std::string>();
  options.interface_suffix = call.options["interface"].as<std::string>();
  terminal::Stage stage("starting a lab of " + count_of(options.nodes, "node") + " with " +
                        count_of(options.gpus_per_node, "stand-in GPU") + " each");
  try {
    auto lab = Lab::start(options);
    stage.done();
    lab.leave();
    terminal::say("  enter  " + bold("./workbook lab shell " + lab.name()));
    terminal::say("  end    " + bold("./workbook lab down " + lab.name()));
  } catch (const Error&) {
    stage.failed();
    throw;
  }
  return 0;
}

void end(Lab lab) {
  lab.end();
  terminal::say("  " + lab.name() + " is down");
}

int down(const Call& call) {
  if (!call.options.count("all")) {
    call.expect_at_most(1);
    end(Lab::find(call.word(0)));
    return 0;
  }
  call.expect_at_most(0);
  for (const auto& lab : present_labs()) {
    if (lab.stays) end(Lab::find(lab.name));
  }
  return 0;
}

void show(const LabRecord& record) {
  if (record.first_process == 0) {
    terminal::say(bold(record.name) + "  is still starting");
    return;
  }
  const auto lab = Lab::find(record.name);
  terminal::say(bold(record.name) + "  " + count_of(record.nodes, "node") +
                (record.stays ? "" : ", until the program that uses it ends"));
  const auto states = lab.node_states();
  for (const auto& [node, state] : states) {
    const bool fine = state == "idle" || state == "mixed" || state == "allocated";
    terminal::say("  " + node + "  " +
                  terminal::styled(fine ? terminal::Style::green : terminal::Style::yellow, state));
  }
  if (states.empty()) terminal::say("  its controller does not answer");
}

int status(const Call& call) {
  call.expect_at_most(1);
  const auto labs = present_labs();
  if (!call.word(0).empty()) Lab::find(call.word(0));  // says so if there is none
  if (labs.empty()) terminal::say("No lab is up. ./workbook lab up starts one.");
  for (const auto& lab : labs) {
    if (call.word(0).empty() || call.word(0) == lab.name) show(lab);
  }
  return 0;
}

int shell(const Call& call) {
  call.expect_at_most(1);
  const char* own = std::getenv("SHELL");
  const Arguments interactive{own && *own ? own : "/bin/sh"};
  Lab::find(call.word(0)).become(call.command.empty() ? interactive : call.command);
}

int kill(const Call& call) {
  const auto node = call.node();
  Lab::find(call.word(1)).kill_node(node);
  terminal::say("  " + node + " is off");
  return 0;
}

int start(const Call& call) {
  const auto node = call.node();
  Lab::find(call.word(1)).start_node(node);
  terminal::say("  " + node + " is back");
  return 0;
}

struct Action {
  std::string_view name;
  std::string_view what;
  int (*run)(const Call&);
};

constexpr std::array<Action, 6> actions{
    {{"up [NAME]", "start a lab; its nodes are n1, n2, ...", up},
     {"down [NAME]", "end it, or all with --all, and remove everything", down},
     {"status [NAME]", "show labs and the state of their nodes", status},
     {"shell [NAME] [-- COMMAND]", "a shell, or one command, on its login node", shell},
     {"kill NODE [NAME]", "switch a node off, like a power cut", kill},
     {"start NODE [NAME]", "switch it on again", start}}};

std::string_view first_word(std::string_view text) { return text.substr(0, text.find(' ')); }

const Action& find_action(const std::string& name) {
  Arguments names;
  for (const auto& action : actions) {
    if (first_word(action.name) == name) return action;
    names.emplace_back(first_word(action.name));
  }
  if (name.empty()) throw UsageError("Which action? " + join(names, ", ") + ".");
  const auto guess = did_you_mean(name, names);
  throw UsageError("Unknown action: " + name + (guess.empty() ? "." : guess));
}

std::string remark() {
  std::string text;
  for (const auto& action : actions) {
    std::string name(action.name);
    name.resize(27, ' ');
    text += "  " + name + std::string(action.what) + "\n";
  }
  return text +
         "\nIn a lab's shell, sbatch, squeue, srun and scontrol work as on a cluster, on this "
         "machine's\nfiles. A lab needs root, Slurm and munge: sudo apt-get install slurm-wlm "
         "munge";
}

}  // namespace

int run_lab(const Project&, const Arguments& arguments) {
  cxxopts::Options options("./workbook lab",
                           "Starts a Slurm of your own on this machine, to try job scripts.\n");
  options.add_options()("nodes", "Nodes", cxxopts::value<size_t>()->default_value("2"), "N")(
      "gpus", "Stand-in GPUs per node", cxxopts::value<size_t>()->default_value("4"), "N")(
      "partition", "Partitions; the first one is the default",
      cxxopts::value<std::vector<std::string>>()->default_value("main"), "NAME,...")(
      "reservation", "A reservation of all nodes", cxxopts::value<std::string>()->default_value(""),
      "NAME")("interface", "Suffix of node names, as in site.conf",
              cxxopts::value<std::string>()->default_value(""),
              "SUFFIX")("all", "With down: end all labs that no program uses");
  options.add_options("hidden")("words", "", cxxopts::value<Arguments>());
  options.parse_positional({"words"});
  const auto split = split_at_dashes(arguments);
  const auto parsed = parse(options, "ACTION [options]", remark(), split.own);
  if (!parsed) return 0;

  auto words = parsed->count("words") ? (*parsed)["words"].as<Arguments>() : Arguments{};
  const std::string name = words.empty() ? "" : words.front();
  const auto& action = find_action(name);
  words.erase(words.begin());
  if (const auto why = lab_impossible()) throw Error(*why);
  return action.run({*parsed, words, split.passed_on});
}

}  // namespace checker

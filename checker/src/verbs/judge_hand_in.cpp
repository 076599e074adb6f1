// Grading's worker: judges what one student handed in, alone with it.
#include <sys/stat.h>

#include <cstdio>

#include "grade/worker.hpp"
#include "support/error.hpp"
#include "verbs/options.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

cxxopts::Options judge_hand_in_command() {
  cxxopts::Options options("./workbook judge-hand-in", "What grade starts for each hand-in.\n");
  options.add_options()("archive", "It is an archive, and no folder")(
      "work", "A folder to work in", cxxopts::value<std::string>(), "DIR")(
      "programs", "Where programs are kept for equal texts",
      cxxopts::value<std::string>()->default_value(""),
      "DIR")("user", "Who programs are, if we are root",
             cxxopts::value<uint32_t>()->default_value("61000"),
             "UID")("memory", "What all its processes may take together",
                    cxxopts::value<uint64_t>()->default_value("6442450944"),
                    "BYTES")("hide", "What must not be seen; several may be given",
                             cxxopts::value<std::vector<std::string>>(), "PATH")(
      "done", "A step that is judged already; several may be given",
      cxxopts::value<std::vector<std::string>>(), "STEP")("unsafe", "Without the box");
  options.add_options("hidden")("what", "", cxxopts::value<std::string>());
  options.parse_positional({"what"});
  return options;
}

std::vector<std::string> texts(const cxxopts::ParseResult& parsed, const char* name) {
  return parsed.count(name) ? parsed[name].as<std::vector<std::string>>()
                            : std::vector<std::string>();
}

}  // namespace

int run_judge_hand_in(const Project& project, const Arguments& arguments) {
  const auto parsed = parse(judge_hand_in_command(), "HAND_IN --work DIR",
                            "Says what it finds in lines of JSON.", arguments);
  if (!parsed) return 0;
  if (!parsed->count("what") || !parsed->count("work")) throw UsageError("Which hand-in?");
  ::umask(022);
  grade::Task task{.hand_in = (*parsed)["what"].as<std::string>(),
                   .archive = parsed->count("archive") > 0,
                   .work = fs::absolute((*parsed)["work"].as<std::string>()),
                   .programs = (*parsed)["programs"].as<std::string>(),
                   .hidden = {},
                   .done = texts(*parsed, "done"),
                   .user = (*parsed)["user"].as<uint32_t>(),
                   .unsafe = parsed->count("unsafe") > 0,
                   .memory = (*parsed)["memory"].as<uint64_t>(),
                   .say = [](const std::string& line) {
                     std::puts(line.c_str());
                     std::fflush(stdout);
                   }};
  for (const auto& path : texts(*parsed, "hide")) task.hidden.emplace_back(path);
  return grade::work_on(project, task) ? 0 : 1;
}

}  // namespace checker

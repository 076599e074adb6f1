#include "judge/recipe.hpp"

#include <algorithm>

#include "course/course.hpp"
#include "process/ranks.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

// How the target itself is built, whatever it depends on, for each of these.
std::vector<std::string> commands_for(const Project& project,
                                      const std::vector<std::string>& targets) {
  Command command;
  command.arguments = {project.ninja, "-C", project.build.string(), "-t", "commands", "-s"};
  command.arguments.insert(command.arguments.end(), targets.begin(), targets.end());
  std::vector<std::string> commands;
  RankOptions options;
  options.on_line = [&](size_t, bool is_error, std::string_view line) {
    if (!is_error && !line.starts_with("ninja: ")) commands.emplace_back(line);
    return true;
  };
  if (!run_ranks({&command, 1}, options).success() || commands.size() != targets.size()) {
    throw Error("ninja does not know how " + join(targets, " and ") +
                " are built. Fix: ./workbook build");
  }
  return commands;
}

// A shell line's words, as far as CMake writes such lines: quotes of both kinds and backslashes.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words(1);
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\\' && quote != '\'' && i + 1 < line.size()) {
      words.back() += line[++i];
    } else if (c == quote) {
      quote = 0;
    } else if (!quote && (c == '"' || c == '\'')) {
      quote = c;
    } else if (!quote && c == ' ') {
      if (!words.back().empty()) words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

std::string without_option(const std::string& word) {
  for (const std::string option : {"-I", "-L", "-Wl,-rpath,"}) {
    if (word.starts_with(option)) return word.substr(option.size());
  }
  return word;
}

// A precompiled header lies beside the header, and refers to the files that it was made from.
std::vector<fs::path> with_what_belongs_to_it(const fs::path& input) {
  std::vector<fs::path> all{input, input.string() + ".gch", input.string() + ".cxx"};
  if (input.extension() != ".hxx") return all;
  const auto text = read_file(input);
  for (const std::string_view line : split_lines(text)) {
    constexpr std::string_view include = "#include \"/";
    if (!line.starts_with(include)) continue;
    const auto path = line.substr(include.size() - 1);
    all.emplace_back(path.substr(0, path.find('"')));
  }
  return all;
}

// The time of the newest among them: the replay, and all that programs load.
std::string version_of_libraries(const Project& project) {
  auto newest = fs::last_write_time(project.build / "bin" / "replay");
  for (const auto& entry : fs::recursive_directory_iterator(project.build / "lib")) {
    if (entry.is_regular_file()) newest = std::max(newest, entry.last_write_time());
  }
  return std::to_string(newest.time_since_epoch().count());
}

}  // namespace

std::string Recipe::with(const std::string& other_source, const std::string& other_object,
                         const std::string& other_program) const {
  const auto new_compile = replaced(replaced(compile, source, other_source), object, other_object);
  const auto new_link = replaced(replaced(link, object, other_object), "-o " + program + " ",
                                 "-o " + other_program + " ");
  if (new_compile.find(other_source) == new_compile.npos ||
      new_link.find(other_program) == new_link.npos) {
    throw Error("The build's commands have an unknown form: " + compile);
  }
  return new_compile + " && { " + new_link + " ; }";
}

std::string Recipe::version_of(const std::string& text) const {
  return fingerprint(text + compile + link + libraries);
}

std::vector<fs::path> Recipe::inputs(const Project& project) const {
  std::vector<fs::path> found;
  auto words = words_of(compile);
  for (auto& word : words_of(link)) words.push_back(std::move(word));
  for (const auto& word : words) {
    const auto name = without_option(word);
    if (name.empty() || name == source || name == program || name.starts_with(object)) continue;
    const auto path = (project.build / name).lexically_normal();
    for (const auto& input : with_what_belongs_to_it(path)) {
      std::error_code not_a_path;
      if (!lies_in(input, project.source) || input == project.source) continue;
      if (!fs::exists(input, not_a_path) || std::ranges::find(found, input) != found.end())
        continue;
      found.push_back(input);
    }
  }
  return found;
}

// Any trainer is built like any other, so the first step's solution serves for all.
Recipe recipe_of(const Project& project) {
  const auto course = load_course(project.chapters());
  const auto& step = course.steps.front();
  const std::string target = "solution_" + step.label();
  const auto source = course.path_of(step, course.program_of(step), true).string();
  Recipe recipe;
  recipe.source = (project.source / source).string();
  recipe.object = "checker/CMakeFiles/" + target + ".dir/__/" + source + ".o";
  recipe.program = "bin/" + target;
  const auto commands = commands_for(project, {recipe.object, recipe.program});
  // Where tests are built warnings are errors, but not in what students write.
  recipe.compile = replaced(commands[0], " -Werror ", " ");
  recipe.link = commands[1];
  recipe.libraries = version_of_libraries(project);
  return recipe;
}

}  // namespace checker

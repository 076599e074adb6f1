#include "course/programs.hpp"
#include "process/build.hpp"
#include "process/lines.hpp"
#include "process/trainer.hpp"
#include "support/files.hpp"
#include "support/text.hpp"
#include "terminal/terminal.hpp"
#include "verbs/arguments.hpp"
#include "verbs/options.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

// What the finished run said, after a first line that tells with which options. Written only when
// the run has succeeded, so that its being there means that the work is done.
fs::path record_of(const Program& program) { return program.output / "start.log"; }

std::string first_line(const Arguments& options) { return "options: " + join(options, " ") + "\n"; }

// Done is a run of this very program with these options whose files nobody has written to since.
bool is_done(const Program& program, const Arguments& options) {
  const auto record = record_of(program);
  if (!fs::exists(record) || !fs::exists(program.file) ||
      !read_file(record).starts_with(first_line(options))) {
    return false;
  }
  const auto time = fs::last_write_time(record);
  for (const auto& entry : fs::directory_iterator(program.output)) {
    if (entry.last_write_time() > time) return false;
  }
  return fs::last_write_time(program.file) <= time;
}

// Shows what the trainer says as it comes, and keeps it; its progress bar goes to standard error,
// which is the terminal itself.
int train(const Program& program, const Arguments& options) {
  std::error_code ignored;
  fs::remove(record_of(program), ignored);
  const TemporaryFolder meeting;
  const TrainerRun run{.program = program.file,
                       .world_size = 1,
                       .arguments = with_output(options, program.output),
                       .store = meeting.path() / "store"};
  std::string record = first_line(options);
  RankOptions ranks;
  ranks.wiring = {.pipe_output = true, .pipe_error = false};
  ranks.on_line = [&](size_t, bool, std::string_view line) {
    record.append(line).append("\n");
    return write_line(1, "", line);
  };
  const auto result = run_ranks(rank_commands(run), ranks);
  if (!result.success()) {
    terminal::complain(describe_failure(result));
    return result.status();
  }
  write_file(record_of(program), record);
  return 0;
}

void say_what_is_next(const Project& project, const Course& course, const Program& program) {
  terminal::say("");
  terminal::say("The model and the log are in " + project.shown(program.output) + ".");
  if (course.todos.empty()) return;
  const auto& todo = course.todos.begin()->second;
  const auto& step = course.step_of(todo);
  const auto first_program = [](const Course& all) {
    return all.path_of(all.steps.front(), all.program_of(all.steps.front()), false).string();
  };
  const auto bold = [](const std::string& text) {
    return terminal::styled(terminal::Style::bold, text);
  };
  terminal::say("");
  terminal::say("Next is TODO " + std::to_string(todo.number) + ", " + todo.title + ":");
  terminal::say("  read   " + bold(first_program(course)) + ", the program that just ran");
  terminal::say("  learn  " + bold("./workbook slides --handout") +
                ", the course as a text to read");
  terminal::say("  edit   " + bold(course.file_of(todo).string()) + ", where it says TODO " +
                std::to_string(todo.number));
  terminal::say("         an editor with clangd completes names and explains them");
  terminal::say("  run    " + bold(step.run));
  terminal::say("  judge  " + bold("./workbook watch") + ", which checks it every time you save");
}

}  // namespace

int run_start(const Project& project, const Arguments& arguments) {
  cxxopts::Options options("./workbook start", "Trains the first step and says what to do next.\n");
  options.add_options()("again", "Train again, even if it is done");
  const auto split = split_at_dashes(arguments);
  const auto parsed = parse(options, "[--again] [-- trainer options]",
                            "--cuda builds for GPUs, --cpu without.", split.own);
  if (!parsed) return 0;

  const auto course = load_course(project.chapters());
  const auto program = find_program(project, course.steps.front(), false);
  build_targets(project, {&program.target, 1}, "building " + program.target);
  if (!parsed->count("again") && is_done(program, split.passed_on)) {
    terminal::say("  training: already done (./workbook start --again repeats it)");
    for (const auto& line : split_lines(read_file(record_of(program)))) {
      if (!line.starts_with("options: ")) terminal::say(line);
    }
  } else if (const int status = train(program, split.passed_on); status != 0) {
    return status;
  }
  say_what_is_next(project, course, program);
  return 0;
}

}  // namespace checker

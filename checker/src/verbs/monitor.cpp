#include <poll.h>

#include "console/terminal.hpp"
#include "course/programs.hpp"
#include "monitor/compare.hpp"
#include "monitor/csv.hpp"
#include "monitor/live.hpp"
#include "monitor/page.hpp"
#include "monitor/summary.hpp"
#include "monitor/tensorboard.hpp"
#include "monitor/trace.hpp"
#include "process/signals.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "verbs/options.hpp"
#include "watch/screen.hpp"

namespace checker {

namespace {

namespace fs = std::filesystem;

bool has_records(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "monitor", ignored);
}

// The output of a job of this number, as job scripts name it.
fs::path output_of_job(const Project& project, const std::string& job) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(project.source / "output", ignored)) {
    if (entry.path().filename().string().ends_with("-" + job)) return entry.path();
  }
  return {};
}

// What a user calls a run: its folder, the number of a step that ./workbook run ran, or that of a
// job.
fs::path folder_of(const Project& project, const std::string& name) {
  std::error_code ignored;
  if (fs::exists(name, ignored) || name.find('/') != std::string::npos) return name;
  if (const auto job = output_of_job(project, name); !job.empty()) return job;
  const auto course = load_course(project.chapters());
  const auto& step = course.step(name);
  const auto own = find_program(project, step, /*solution=*/false).output;
  const auto reference = find_program(project, step, /*solution=*/true).output;
  if (!has_records(own) && !has_records(reference)) {
    throw Error("No run of step " + step.label() + " has been recorded yet. Fix: ./workbook run " +
                step.label() + ".");
  }
  const auto written = [&](const fs::path& folder) {
    return has_records(folder) ? fs::last_write_time(folder / "monitor", ignored)
                               : fs::file_time_type::min();
  };
  return written(reference) > written(own) ? reference : own;
}

void show_run(const Project& project, const fs::path& folder, const cxxopts::ParseResult& parsed) {
  const auto run = monitor::load_run(folder);
  const auto figures = monitor::figures_of(run);
  for (const auto& line : monitor::to_lines(run, figures, present_look())) terminal::say(line);
  const auto page = parsed.count("output") ? fs::path(parsed["output"].as<std::string>())
                                           : folder / "monitor.html";
  write_file(page, monitor::to_page(run, figures));
  terminal::say("\nThe page: " + project.shown(page));
  const auto wanted = [&](const char* option, const char* what) {
    if (!parsed.count(option)) return fs::path();
    const fs::path place = parsed[option].as<std::string>();
    terminal::say(std::string(what) + ": " + project.shown(place));
    return place;
  };
  if (const auto place = wanted("csv", "Tables"); !place.empty()) monitor::write_csv(run, place);
  if (const auto place = wanted("trace", "Trace, for ui.perfetto.dev"); !place.empty()) {
    write_file(place, monitor::to_trace(run));
  }
  if (const auto place = wanted("tensorboard", "For tensorboard --logdir"); !place.empty()) {
    monitor::write_tensorboard(run, place);
  }
}

void compare(const Project& project, const std::vector<std::string>& names,
             const cxxopts::ParseResult& parsed) {
  std::vector<monitor::ComparedRun> runs;
  for (const auto& name : names) {
    auto run = monitor::load_run(folder_of(project, name));
    auto figures = monitor::figures_of(run);
    runs.push_back({name, std::move(run), std::move(figures)});
  }
  for (const auto& line : monitor::to_comparison_lines(runs)) terminal::say(line);
  const fs::path page =
      parsed.count("output") ? parsed["output"].as<std::string>() : "comparison.html";
  write_file(page, monitor::to_comparison_page(runs));
  terminal::say("\nThe page: " + project.shown(page));
}

// False: somebody does not want to wait any longer.
bool wait_for_news() {
  const SignalWatch signals;
  pollfd watched{signals.descriptor(), POLLIN, 0};
  return ::poll(&watched, 1, /*milliseconds=*/2000) == 0;
}

// Of the fastest trainers' records the last ten seconds and more.
constexpr size_t kRecentChunks = 12;

// Until all ranks have ended, or Ctrl-C. Where nothing can be drawn over, a line each time.
void follow_run(const Project& project, const std::string& name) {
  std::optional<Screen> screen;
  if (console::can_draw(1)) screen.emplace();
  const auto show = [&](const std::vector<std::string>& lines) {
    if (screen) {
      screen->draw(lines);
    } else {
      terminal::say(lines.front());
    }
  };
  for (bool over = false; !over;) {
    try {
      const auto run = monitor::load_run(folder_of(project, name), kRecentChunks);
      show(monitor::live_lines(run, /*window=*/10, present_look()));
      over = run.ended();
    } catch (const Error& error) {  // not begun yet
      show({std::string("waiting: ") + error.what()});
    }
    if (!over && !wait_for_news()) return;
  }
}

}  // namespace

int run_monitor(const Project& project, const Arguments& arguments) {
  cxxopts::Options options("./workbook monitor",
                           "Shows what a run did, what it used and what limits it.\n");
  options.add_options()("live", "Follow a running run in the terminal")(
      "output",
      "Write the page to this file (default: in the run's folder; for several runs "
      "comparison.html)",
      cxxopts::value<std::string>(),
      "FILE")("csv", "Write all figures as tables into this folder", cxxopts::value<std::string>(),
              "DIR")("trace", "Write a trace for Perfetto", cxxopts::value<std::string>(), "FILE")(
      "tensorboard", "Write event files for TensorBoard into this folder",
      cxxopts::value<std::string>(), "DIR");
  options.add_options("hidden")("runs", "", cxxopts::value<std::vector<std::string>>());
  options.parse_positional({"runs"});
  const auto parsed = parse(
      options, "RUN [RUN...] [options]",
      "RUN is the number of a step that ./workbook run has run, the number of a job, or the "
      "output\nfolder of a run. Name several to compare them. Trainers record with --monitor.",
      arguments);
  if (!parsed) return 0;
  if (!parsed->count("runs")) {
    throw UsageError("Which run? For example: ./workbook monitor 02.");
  }
  const auto runs = (*parsed)["runs"].as<std::vector<std::string>>();
  if (runs.size() > 1) {
    for (const auto* single : {"live", "csv", "trace", "tensorboard"}) {
      if (parsed->count(single)) {
        throw UsageError(std::string("--") + single + " works for one run only.");
      }
    }
    compare(project, runs, *parsed);
  } else if (parsed->count("live")) {
    follow_run(project, runs.front());
  } else {
    show_run(project, folder_of(project, runs.front()), *parsed);
  }
  return 0;
}

}  // namespace checker

#include "judge/kept_results.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "process/capture.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

constexpr const char* kHeader =
    "# Results of the catalogue, one program a line. ./workbook verify --record writes this file.\n"
    "# todo\tname\tform\tdevice\tkind\twanted\tas wanted\tblamed "
    "rightly\tdeviation\tfindings\tkey\t"
    "commit\n";

const char* form_name(Form form) {
  return form == Form::student ? "student" : form == Form::whole ? "whole" : "solution";
}

std::string kind_of(const Sample& sample) {
  if (sample.job) return "job";
  return sample.step->kind == ProgramKind::plain ? "plain" : "trainer";
}

std::string wanted_name(Expectation wanted) {
  if (wanted == Expectation::states) return "states";
  return wanted == Expectation::accepted ? "accepted" : "rejected";
}

std::string line_of(const KeptResult& result) {
  std::array<char, 32> deviation{};
  std::snprintf(deviation.data(), deviation.size(), "%.1e", result.deviation);
  const auto yes = [](bool is) { return is ? "yes" : "no"; };
  return join(
      std::vector<std::string>{label_of_todo(result.todo), result.name, result.form, result.device,
                               result.kind, result.wanted, yes(result.as_wanted),
                               yes(result.blamed_rightly), deviation.data(),
                               result.findings.empty() ? "-" : result.findings, result.key,
                               result.commit.empty() ? "-" : result.commit},
      "\t");
}

KeptResult read_line(const std::string& where, const std::string& line) {
  const auto columns = split(line, '\t');
  if (columns.size() != 12) {
    throw Error(where + ": " + std::to_string(columns.size()) +
                " columns, and a result has 12. Fix: delete the line, then ./workbook verify.");
  }
  const auto text = [](const std::string& column) { return column == "-" ? "" : column; };
  return {.todo = todo_labelled(columns[0]).value_or(0),
          .name = columns[1],
          .form = columns[2],
          .device = columns[3],
          .kind = columns[4],
          .wanted = columns[5],
          .as_wanted = columns[6] == "yes",
          .blamed_rightly = columns[7] == "yes",
          .deviation = std::strtod(columns[8].c_str(), nullptr),
          .findings = text(columns[9]),
          .key = columns[10],
          .commit = text(columns[11])};
}

// All sources in these folders, but for tests and benchmarks.
std::string fingerprint_of(const fs::path& source, const std::vector<std::string>& folders) {
  std::vector<fs::path> files;
  for (const auto& folder : folders) {
    auto entry = fs::recursive_directory_iterator(source / folder);
    for (; entry != fs::end(entry); ++entry) {
      const auto name = entry->path().filename();
      const bool aside = name == "tests" || name == "benchmarks" || name == "__pycache__";
      if (entry->is_directory() && aside) entry.disable_recursion_pending();
      if (entry->is_regular_file()) files.push_back(entry->path());
    }
  }
  std::ranges::sort(files);
  std::string all;
  for (const auto& file : files) {
    all += file.lexically_relative(source).string() + "\n" + read_file(file);
  }
  return fingerprint(all);
}

}  // namespace

KeptResults::KeptResults(fs::path file) : file_(std::move(file)) {
  if (!fs::exists(file_)) return;
  int number = 0;
  for (const auto& line : split_lines(read_file(file_))) {
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    add(read_line(file_.string() + ":" + std::to_string(number), line));
  }
}

void KeptResults::add(KeptResult result) {
  const Place place{result.todo, result.name, result.form, result.device};
  results_.insert_or_assign(place, std::move(result));
}

void KeptResults::keep(const KeptResult& result) {
  append_to_file(file_, line_of(result) + "\n");
  add(result);
}

const KeptResult* KeptResults::find(const Sample& sample, const std::string& device,
                                    const std::string& key) const {
  const auto found = results_.find({sample.todo, sample.name, form_name(sample.form), device});
  return found != results_.end() && found->second.key == key ? &found->second : nullptr;
}

std::vector<KeptResult> KeptResults::all() const {
  std::vector<KeptResult> results;
  for (const auto& [place, result] : results_) results.push_back(result);
  return results;
}

void KeptResults::write() const {
  std::string text = kHeader;
  for (const auto& [place, result] : results_) text += line_of(result) + "\n";
  write_file(file_, text);
}

void Tally::add(const KeptResult& result) {
  if (result.wanted == "rejected") {
    ++wrong;
    rejected += result.as_wanted ? 1 : 0;
    blamed += result.blamed_rightly ? 1 : 0;
  } else {
    ++right;
    accepted += result.as_wanted ? 1 : 0;
  }
}

fs::path published_results(const Project& project) { return project.chapters() / "results.tsv"; }

ResultKeys::ResultKeys(const Project& project, const Course& course) {
  std::string todos;
  for (const auto& [number, todo] : course.todos) {
    todos += std::to_string(number) + " " + todo.step + " " + join(todo.features, " ");
    for (const int needed : todo.needs) todos += " " + std::to_string(needed);
    todos += "\n";
  }
  judge_ = fingerprint_of(project.source,
                          {"checker/src/evidence", "checker/src/judge", "checker/src/course",
                           "checker/src/plan", "checker/src/process", "checker/replay", "tasks",
                           "distributed_utils/include", "distributed_utils/src"}) +
           fingerprint(todos);
  jobs_ = judge_ + fingerprint_of(project.source, {"checker/src/jobs", "checker/src/lab"});
}

std::string ResultKeys::of(const Sample& sample, const std::string& device) const {
  return fingerprint(sample.text() + form_name(sample.form) + sample.step->name + device +
                     wanted_name(sample.wanted) + (sample.job ? jobs_ : judge_));
}

KeptResult kept(const SampleResult& result, const std::string& device, const std::string& key,
                const std::string& commit) {
  return {.todo = result.sample.todo,
          .name = result.sample.name,
          .form = form_name(result.sample.form),
          .device = device,
          .kind = kind_of(result.sample),
          .wanted = wanted_name(result.sample.wanted),
          .as_wanted = result.as_wanted,
          .blamed_rightly = result.blamed_rightly,
          .deviation = result.deviation,
          .findings = result.findings,
          .key = key,
          .commit = commit};
}

std::string present_commit(const Project& project) try {
  const auto said = capture(
      {{"git", "-C", project.source.string(), "describe", "--always", "--dirty=+", "--exclude=*"},
       {"LC_ALL=C"},
       {}});
  return said.success() ? std::string(trim(said.output)) : "";
} catch (const Error&) {
  return "";
}

}  // namespace checker

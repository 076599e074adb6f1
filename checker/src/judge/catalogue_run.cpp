#include "judge/catalogue_run.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "course/render.hpp"
#include "judge/build_cache.hpp"
#include "judge/compile.hpp"
#include "judge/given.hpp"
#include "judge/names.hpp"
#include "process/task_module.hpp"
#include "support/text.hpp"

namespace checker {

namespace {

std::string in_words(const Report& report) {
  std::string text;
  for (const auto& verdict : report.verdicts) {
    for (const auto& finding : verdict.findings) {
      text += (text.empty() ? "" : "; ") + name_of_todo(verdict.todo) + " " + finding.id;
    }
  }
  return text;
}

bool known_as_given(const Course& course, const Sample& sample) {
  std::set<int> untouched;
  for (const auto* file : course.files_of(*sample.step)) {
    const auto text = std::ranges::find(sample.files, file->name, &NamedText::name);
    if (text == sample.files.end()) continue;
    untouched.merge(untouched_todos(course, file->source, *sample.step, text->text));
  }
  return std::ranges::all_of(course.todos_of(*sample.step, sample.job),
                             [&](int todo) { return untouched.contains(todo); });
}

// The first TODO that does not stand as it must, or nothing.
std::string state_problem(const SampleResult& result, const Report& report) {
  for (const auto& verdict : report.verdicts) {
    const auto wanted = result.sample.states.find(verdict.todo);
    const std::string got(name_of(verdict.state));
    if (wanted != result.sample.states.end() && wanted->second == got) continue;
    return name_of_todo(verdict.todo) + " is " + got + ": " + result.findings;
  }
  const Finding* first = report.first_finding();
  const std::string id = first ? first->id : "";
  const auto& finding = result.sample.finding;
  return finding.empty() || id == finding ? "" : "the first finding is " + id;
}

void hold_against(SampleResult& result, const Report& report, const Course& course) {
  const auto& sample = result.sample;
  result.findings = in_words(report);
  result.verdicts = report.verdicts;
  const Finding* first = report.first_finding();
  if (sample.wanted == Expectation::accepted) {
    result.as_wanted = result.blamed_rightly = first == nullptr && report.passed();
    result.deviation = report.largest_deviation;
    if (!result.as_wanted) result.problem = "rejected: " + result.findings;
    return;
  }
  if (first) result.deviation = first->deviation;
  if (sample.wanted == Expectation::states) {
    result.problem = state_problem(result, report);
    result.as_wanted = result.blamed_rightly = result.problem.empty();
    return;
  }
  if (sample.wanted == Expectation::open && sample.form == Form::student) {
    const auto is_open = [](const Verdict& verdict) { return verdict.state == State::open; };
    result.as_wanted = result.blamed_rightly = std::ranges::all_of(report.verdicts, is_open);
    if (!result.as_wanted) result.problem = "not recognised as unchanged";
    return;
  }
  const auto own = [&](int todo) {
    if (std::ranges::find(sample.or_todos, todo) != sample.or_todos.end()) return true;
    return sample.todo == 0  // any of the step's
               ? std::ranges::find(sample.step->todos, todo) != sample.step->todos.end()
               : course.todos.at(todo).shows_in == course.todos.at(sample.todo).shows_in;
  };
  // Some leave their TODO as it was. In a student's file that is not a mistake, and not done
  // either.
  const bool open = std::ranges::any_of(report.verdicts, [&](const Verdict& verdict) {
    return verdict.state == State::open && own(verdict.todo);
  });
  result.as_wanted = first != nullptr || open;
  result.blamed_rightly = first ? own(first->todo) : open;
  if (!result.as_wanted) result.problem = "accepted";
  if (sample.wanted == Expectation::open && !known_as_given(course, sample)) {
    result.as_wanted = false;
    result.problem = "not recognised as unchanged";
  }
  if (first && !result.blamed_rightly) result.problem = "blamed on " + result.findings;
}

// Job scripts start the solution's trainer, one for all.
std::string piece_name(const Sample& sample) {
  if (sample.job) return sample.step->name + "_trainer";
  return sample.name + (sample.form == Form::student ? "-student" : "");
}

// The step's job script, or the files of its program.
std::vector<const CourseFile*> files_of(const Course& course, const Step& step, bool job) {
  auto files = course.files_of(step);
  std::erase_if(files,
                [&](const CourseFile* file) { return (file->kind == FileKind::job) != job; });
  return files;
}

std::vector<NamedText> rendered(const Course& course, const Step& step, bool job, Rendering which) {
  std::vector<NamedText> texts;
  for (const auto* file : files_of(course, step, job)) {
    texts.push_back({file->name, render(course, *file, step, which)});
  }
  return texts;
}

std::vector<CachedProgram> pieces_of(const Course& course, std::span<const Sample> samples) {
  std::vector<CachedProgram> pieces;
  for (const auto& sample : samples) {
    const auto name = piece_name(sample);
    if (std::ranges::find(pieces, name, &CachedProgram::name) != pieces.end()) continue;
    pieces.push_back({name, sample.job ? rendered(course, *sample.step, false, Rendering::solution)
                                       : sample.files});
  }
  return pieces;
}

// All samples, step by step.
class Samples {
 public:
  Samples(const Course& course, const std::vector<CatalogueEntry>& catalogue)
      : course_(course), catalogue_(catalogue) {}

  std::vector<Sample> make() {
    for (const auto& step : course_.steps) {
      for (const bool job : {false, true}) add(step, job);
    }
    return std::move(samples_);
  }

 private:
  void add(const Step& step, bool job) {
    const auto todos = course_.todos_of(step, job);
    if (todos.empty()) return;
    add_forms({.name = step.name + "_as_given",
               .wanted = step.repair ? Expectation::rejected : Expectation::open,
               .step = &step,
               .quick = true,
               .job = job},
              [&](Form) { return rendered(course_, step, job, Rendering::step); });
    add_forms({.name = step.name + "_solution",
               .wanted = Expectation::accepted,
               .step = &step,
               .quick = true,
               .job = job},
              [&](Form form) { return rendered(course_, step, job, as(form)); });
    for (const auto& entry : catalogue_) {
      if (std::ranges::find(todos, entry.todo) == todos.end()) continue;
      Sample sample{
          .todo = entry.todo,
          .name = entry.name,
          .wanted = entry.kind == EntryKind::wrong ? Expectation::rejected : Expectation::accepted,
          .step = &step,
          .quick = entry.quick,
          .job = job,
          .words = entry.words};
      if (entry.kind == EntryKind::unfinished) {
        add_unfinished(std::move(sample), entry);
      } else {
        add_forms(sample, [&](Form form) { return edited(entry, step, job, as(form)); });
      }
    }
  }

  static Rendering as(Form form) {
    return form == Form::student ? Rendering::student : Rendering::solution;
  }

  std::vector<NamedText> edited(const CatalogueEntry& entry, const Step& step, bool job,
                                Rendering which) const {
    auto texts = rendered(course_, step, job, which);
    const auto& file = course_.source_of(course_.todos.at(entry.todo));
    std::ranges::find(texts, file.name, &NamedText::name)->text =
        apply_edits(entry, render_lines(course_, file, step, which));
    return texts;
  }

  // The few quick ones in one form each, by turns.
  void add_forms(Sample sample, const std::function<std::vector<NamedText>(Form)>& files) {
    const bool quick = sample.quick;
    const auto turn = quick && ++quick_ % 2 == 0 ? Form::student : Form::solution;
    for (const auto form : {Form::solution, Form::student}) {
      sample.form = form;
      sample.quick = quick && form == turn;
      sample.files = files(form);
      samples_.push_back(sample);
    }
  }

  void add_unfinished(Sample sample, const CatalogueEntry& entry) {
    sample.form = Form::student;
    sample.wanted = Expectation::states;
    sample.states = entry.states;
    sample.finding = entry.finding;
    sample.files = edited(entry, *sample.step, sample.job, Rendering::step);
    samples_.push_back(std::move(sample));
  }

  const Course& course_;
  const std::vector<CatalogueEntry>& catalogue_;
  std::vector<Sample> samples_;
  size_t quick_ = 0;
};

SampleResult judge(const Project& project, const Course& course, const Sample& sample,
                   const CachedProgram& piece, const CheckOptions& how, ForkServers& servers) {
  SampleResult result{.sample = sample};
  if (piece.program.empty()) {
    const auto source = project.build / "workshop" / piece.name / piece.files.front().name;
    const auto error = first_error(piece.output, source, source.string());
    result.problem = "does not compile: " + (error ? error->message : "see " + source.string());
    return result;
  }
  CheckOptions options;
  options.device = how.device;
  options.task = how.task;
  options.plans = how.plans;
  options.program = piece.program.string();
  options.student = sample.form != Form::solution;
  if (sample.job) options.job_script = sample.files.front().text;
  // Its own, so that the same program gets the same verdict from one day to the next.
  options.seed =
      std::stoull(fingerprint(sample.title() + "/" + std::to_string(how.seed)), nullptr, 16) | 1;
  options.build = false;
  options.servers = &servers;
  hold_against(result, check_step(project, course, *sample.step, options), course);
  return result;
}

}  // namespace

std::string Sample::title() const {
  return name + (form == Form::student ? ", as a student's" : "");
}

std::vector<Sample> catalogue_samples(const Course& course,
                                      const std::vector<CatalogueEntry>& catalogue) {
  return Samples(course, catalogue).make();
}

std::vector<Sample> whole_samples(const Course& course, const std::vector<WholeProgram>& programs) {
  std::vector<Sample> samples;
  for (const auto& program : programs) {
    auto files = rendered(course, *program.step, program.job, Rendering::student);
    for (const auto& [name, text] : program.files) {
      std::ranges::find(files, name, &NamedText::name)->text = text;
    }
    samples.push_back({.todo = program.wrong ? program.todo : program.step->todos.front(),
                       .or_todos = program.or_todos,
                       .name = program.name,
                       .files = std::move(files),
                       .wanted = program.wrong ? Expectation::rejected : Expectation::accepted,
                       .form = Form::whole,
                       .step = program.step,
                       .job = program.job,
                       .words = program.why});
  }
  return samples;
}

void judge_samples(const Project& project, const Course& course, const std::vector<Sample>& samples,
                   const CheckOptions& how,
                   const std::function<void(const SampleResult&)>& on_result) {
  std::set<std::string> tasks;
  for (const auto& sample : samples) {
    tasks.insert(how.task.empty() ? course.chapter_of(*sample.step).task : how.task);
  }
  const BuildCache cache(project, how.build, targets_of_tasks(project, tasks));
  // A few bundles at a time, so that something is to be seen soon.
  constexpr size_t kBatch = 32;
  for (size_t from = 0; from < samples.size(); from += kBatch) {
    const auto batch = std::span(samples).subspan(from, std::min(kBatch, samples.size() - from));
    auto pieces = pieces_of(course, batch);
    cache.build(pieces);
    auto servers = servers_of(project, pieces);
    for (const auto& sample : batch) {
      const auto piece = std::ranges::find(pieces, piece_name(sample), &CachedProgram::name);
      on_result(judge(project, course, sample, *piece, how, servers));
    }
  }
}

}  // namespace checker

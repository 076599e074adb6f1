#include "judge/catalogue_run.hpp"

#include <algorithm>
#include <map>
#include <span>

#include "judge/compile.hpp"
#include "judge/given.hpp"
#include "judge/names.hpp"
#include "judge/workshop.hpp"
#include "ladder/render.hpp"

namespace checker {

namespace {

// TODO 1 to 3 are one group: none of them shows itself alone.
int group_of(int todo) { return todo <= 3 ? 3 : todo; }

std::string in_words(const Report& report) {
  std::string text;
  for (const auto& verdict : report.verdicts) {
    for (const auto& finding : verdict.findings) {
      text +=
          (text.empty() ? "" : "; ") + ("TODO " + std::to_string(verdict.todo)) + " " + finding.id;
    }
  }
  return text;
}

bool known_as_given(const Ladder& ladder, const Sample& sample) {
  const auto& source = sample.job ? ladder.job : ladder.trainer;
  const auto untouched = untouched_todos(ladder, source, *sample.step, sample.text);
  return std::ranges::all_of(sample.step->todos, [&](int todo) {
    return untouched.contains(todo) || !source.todos().contains(todo);
  });
}

// The first TODO that does not stand as it must, or nothing.
std::string state_problem(const SampleResult& result, const Report& report) {
  for (const auto& verdict : report.verdicts) {
    const auto wanted = result.sample.states.find(verdict.todo);
    const std::string got(name_of(verdict.state));
    if (wanted != result.sample.states.end() && wanted->second == got) continue;
    return "TODO " + std::to_string(verdict.todo) + " is " + got + ": " + result.findings;
  }
  const Finding* first = report.first_finding();
  const std::string id = first ? first->id : "";
  const auto& finding = result.sample.finding;
  return finding.empty() || id == finding ? "" : "the first finding is " + id;
}

void hold_against(SampleResult& result, const Report& report, const Ladder& ladder) {
  const auto& sample = result.sample;
  result.findings = in_words(report);
  result.disagreements = report.disagreements;
  const Finding* first = report.first_finding();
  if (sample.wanted == Wanted::accepted) {
    result.as_wanted = result.blamed_rightly = first == nullptr && report.passed();
    result.deviation = report.largest_deviation;
    if (!result.as_wanted) result.problem = "rejected: " + result.findings;
    return;
  }
  if (first) result.deviation = first->deviation;
  if (sample.wanted == Wanted::states) {
    result.problem = state_problem(result, report);
    result.as_wanted = result.blamed_rightly = result.problem.empty();
    return;
  }
  if (sample.wanted == Wanted::open && sample.form == Form::student) {
    const auto is_open = [](const Verdict& verdict) { return verdict.state == State::open; };
    result.as_wanted = result.blamed_rightly = std::ranges::all_of(report.verdicts, is_open);
    if (!result.as_wanted) result.problem = "not known as given";
    return;
  }
  const auto own = [&](int todo) {
    return sample.todo == 0  // any of the step's
               ? std::ranges::find(sample.step->todos, todo) != sample.step->todos.end()
               : group_of(todo) == group_of(sample.todo);
  };
  // Some leave their TODO as it was. In a student's file that is no mistake, and not done either.
  const bool open = std::ranges::any_of(report.verdicts, [&](const Verdict& verdict) {
    return verdict.state == State::open && own(verdict.todo);
  });
  result.as_wanted = first != nullptr || open;
  result.blamed_rightly = first ? own(first->todo) : open;
  if (!result.as_wanted) result.problem = "accepted";
  if (sample.wanted == Wanted::open && !known_as_given(ladder, sample)) {
    result.as_wanted = false;
    result.problem = "not known as given";
  }
  if (first && !result.blamed_rightly) result.problem = "blamed on " + result.findings;
}

// Job scripts start the solution's trainer, one for all.
std::string piece_name(const Sample& sample) {
  if (sample.job) return sample.step->name + "_trainer";
  return sample.name + (sample.form == Form::student ? "-student" : "");
}

std::vector<WorkPiece> pieces_of(const Ladder& ladder, std::span<const Sample> samples) {
  std::vector<WorkPiece> pieces;
  for (const auto& sample : samples) {
    const auto name = piece_name(sample);
    if (std::ranges::find(pieces, name, &WorkPiece::name) != pieces.end()) continue;
    const auto text = sample.job ? render(ladder, ladder.trainer, *sample.step, Rendering::solution)
                                 : sample.text;
    pieces.push_back({name, text});
  }
  return pieces;
}

// All samples, step by step.
class Samples {
 public:
  Samples(const Ladder& ladder, const std::vector<CatalogueEntry>& catalogue)
      : ladder_(ladder), catalogue_(catalogue) {}

  std::vector<Sample> make() {
    for (const auto& step : ladder_.steps) {
      add(step, ladder_.trainer);
      add(step, ladder_.job);
    }
    return std::move(samples_);
  }

 private:
  void add(const Step& step, const Source& source) {
    const auto here = [&](int todo) { return source.todos().contains(todo); };
    if (std::ranges::none_of(step.todos, here)) return;
    const bool job = &source == &ladder_.job;
    add_forms({.name = step.name + "_as_given",
               .wanted = Wanted::open,
               .step = &step,
               .quick = true,
               .job = job},
              [&](Form) { return render(ladder_, source, step, Rendering::step); });
    const auto lines = [&](Form form) {
      return render_lines(ladder_, source, step,
                          form == Form::student ? Rendering::student : Rendering::solution);
    };
    add_forms({.name = step.name + "_solution",
               .wanted = Wanted::accepted,
               .step = &step,
               .quick = true,
               .job = job},
              [&](Form form) { return text_of(lines(form)); });
    for (const auto& entry : catalogue_) {
      const bool own = std::ranges::find(step.todos, entry.todo) != step.todos.end();
      if (!own || !here(entry.todo)) continue;
      Sample sample{.todo = entry.todo,
                    .name = entry.name,
                    .wanted = entry.kind == EntryKind::wrong ? Wanted::rejected : Wanted::accepted,
                    .step = &step,
                    .quick = entry.quick,
                    .job = job,
                    .words = entry.words};
      if (entry.kind == EntryKind::unfinished) {
        add_unfinished(std::move(sample), entry, source);
      } else {
        add_forms(sample, [&](Form form) { return apply_edits(entry, lines(form)); });
      }
    }
  }

  // The few quick ones in one form each, by turns.
  void add_forms(Sample sample, const std::function<std::string(Form)>& text) {
    const bool quick = sample.quick;
    const auto turn = quick && ++quick_ % 2 == 0 ? Form::student : Form::solution;
    for (const auto form : {Form::solution, Form::student}) {
      sample.form = form;
      sample.quick = quick && form == turn;
      sample.text = text(form);
      samples_.push_back(sample);
    }
  }

  void add_unfinished(Sample sample, const CatalogueEntry& entry, const Source& source) {
    sample.form = Form::student;
    sample.wanted = Wanted::states;
    sample.states = entry.states;
    sample.finding = entry.finding;
    sample.text = apply_edits(entry, render_lines(ladder_, source, *sample.step, Rendering::step));
    samples_.push_back(std::move(sample));
  }

  const Ladder& ladder_;
  const std::vector<CatalogueEntry>& catalogue_;
  std::vector<Sample> samples_;
  size_t quick_ = 0;
};

SampleResult judge(const Project& project, const Ladder& ladder, const Sample& sample,
                   const WorkPiece& piece, const CheckOptions& how, ForkServers& servers) {
  SampleResult result{.sample = sample};
  if (piece.program.empty()) {
    const auto source = project.build / "workshop" / piece.name / "train.cpp";
    const auto error = first_error(piece.output, source, source.string());
    result.problem = "does not compile: " + (error ? error->message : "see " + source.string());
    return result;
  }
  CheckOptions options;
  options.device = how.device;
  options.task = how.task;
  options.program = piece.program.string();
  options.student = sample.form == Form::student;
  if (sample.job) options.job_script = sample.text;
  // Its own, so that the same program gets the same verdict from one day to the next.
  options.seed =
      std::stoull(fingerprint(sample.title() + "/" + std::to_string(how.seed)), nullptr, 16) | 1;
  options.build = false;
  options.servers = &servers;
  hold_against(result, check_step(project, ladder, *sample.step, options), ladder);
  return result;
}

}  // namespace

std::string Sample::title() const {
  return name + (form == Form::student ? ", as a student's" : "");
}

std::vector<Sample> catalogue_samples(const Ladder& ladder,
                                      const std::vector<CatalogueEntry>& catalogue) {
  return Samples(ladder, catalogue).make();
}

void judge_samples(const Project& project, const Ladder& ladder, const std::vector<Sample>& samples,
                   const CheckOptions& how,
                   const std::function<void(const SampleResult&)>& on_result) {
  const Workshop workshop(project, how.build);
  // A few bundles at a time, so that something is to be seen soon.
  constexpr size_t kBatch = 32;
  for (size_t from = 0; from < samples.size(); from += kBatch) {
    const auto batch = std::span(samples).subspan(from, std::min(kBatch, samples.size() - from));
    auto pieces = pieces_of(ladder, batch);
    workshop.build(pieces);
    auto servers = servers_of(project, pieces);
    for (const auto& sample : batch) {
      const auto piece = std::ranges::find(pieces, piece_name(sample), &WorkPiece::name);
      on_result(judge(project, ladder, sample, *piece, how, servers));
    }
  }
}

}  // namespace checker

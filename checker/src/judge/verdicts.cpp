#include "judge/verdicts.hpp"

#include <algorithm>
#include <map>

namespace checker {

namespace {

using FindingsByTodo = std::map<int, Findings>;

bool is(const Finding& finding, FindingKind kind) { return finding.kind == kind; }

// Whether the TODO is open: its places are untouched, and the program does nothing about it.
bool is_open(int todo, const Findings& findings, const std::set<int>& untouched) {
  return untouched.contains(todo) && std::ranges::all_of(findings, [](const Finding& finding) {
           return is(finding, FindingKind::not_started);
         });
}

// What the run shows of a TODO that is open, in a few words; empty: nothing that needs to be said.
std::string shown_while_open(const Todo& todo, const Findings& findings) {
  if (!todo.while_given.empty()) return todo.while_given;
  const auto told =
      std::ranges::find_if(findings, [](const Finding& f) { return !f.open.empty(); });
  return told == findings.end() ? "" : told->open;
}

// A TODO without which this one cannot be judged and that is in trouble itself; 0: none.
int waits_for(const Course& course, int todo, const FindingsByTodo& found) {
  for (const int needed : course.todos.at(todo).needs) {
    if (found.contains(needed)) return needed;
    if (needed >= todo) continue;
    if (const int deeper = waits_for(course, needed, found)) return deeper;
  }
  return 0;
}

class Verdicts {
 public:
  Verdicts(const Course& course, const Findings& findings, const std::set<int>& untouched,
           bool cut_off, const std::set<int>& doubtful)
      : course_(course), untouched_(untouched), doubtful_(doubtful), cut_off_(cut_off) {
    for (const auto& finding : findings) {
      auto& group = is(finding, FindingKind::note)          ? notes_
                    : is(finding, FindingKind::consequence) ? following_
                                                            : found_;
      group[finding.todo].push_back(finding);
    }
  }

  Verdict of(int todo) const {
    const auto own = found_.find(todo);
    const bool in_trouble = own != found_.end();
    const bool open = in_trouble && is_open(todo, own->second, untouched_);
    const int waiting = waits_for(course_, todo, found_);
    Verdict verdict{.todo = todo, .state = State::done, .findings = {}, .reason = ""};
    if (in_trouble && !open && (waiting == 0 || shown_all_the_same(own->second, waiting))) {
      verdict.state = State::wrong;
      verdict.findings = in_order(todo, own->second);
    } else if (waiting != 0) {
      verdict.state = untouched_.contains(todo) ? State::open : State::not_judged;
      if (verdict.state == State::not_judged) verdict.reason = "waits for " + name_of_todo(waiting);
    } else if (in_trouble) {
      verdict.state = State::open;
      verdict.reason = shown_while_open(course_.todos.at(todo), own->second);
    } else if (following_.contains(todo) && !found_.empty()) {
      verdict.state = State::not_judged;
      verdict.reason = "waits for " + name_of_todo(found_.begin()->first);
    } else if (cut_off_) {
      const bool open_for_sure = untouched_.contains(todo) && !doubtful_.contains(todo);
      verdict.state = open_for_sure ? State::open : State::not_judged;
      if (!open_for_sure) verdict.reason = "the run did not get that far";
    } else if (untouched_.contains(todo) && !course_.todos.at(todo).while_given.empty()) {
      verdict.state = State::open;
      verdict.reason = course_.todos.at(todo).while_given;
    }
    if (const auto notes = notes_.find(todo); notes != notes_.end()) verdict.notes = notes->second;
    return verdict;
  }

  // Of TODOs that the step got ready-made and that the program no longer fulfils.
  void add_earlier(const Step& step, std::vector<Verdict>& verdicts) const {
    for (const auto& [todo, findings] : found_) {
      if (std::ranges::find(step.todos, todo) != step.todos.end()) continue;
      const int waiting = waits_for(course_, todo, found_);
      if (waiting != 0 && !shown_all_the_same(findings, waiting)) continue;
      verdicts.push_back({.todo = todo,
                          .state = State::wrong,
                          .findings = in_order(todo, findings),
                          .reason = ""});
    }
  }

 private:
  // What follows from another mistake is not shown beside it. But a TODO that is open explains no
  // mistake elsewhere, and nothing explains a crash away.
  bool shown_all_the_same(const Findings& findings, int waiting) const {
    if (std::ranges::any_of(findings, [](const Finding& f) { return is(f, FindingKind::crash); })) {
      return true;
    }
    return is_open(waiting, found_.at(waiting), untouched_) &&
           std::ranges::any_of(findings,
                               [](const Finding& f) { return is(f, FindingKind::mistake); });
  }

  // Where the student has not been yet, what is not started comes last.
  Findings in_order(int todo, Findings findings) const {
    if (!untouched_.contains(todo)) return findings;
    std::stable_partition(findings.begin(), findings.end(),
                          [](const Finding& f) { return !is(f, FindingKind::not_started); });
    return findings;
  }

  const Course& course_;
  const std::set<int>&untouched_, &doubtful_;
  bool cut_off_;
  FindingsByTodo found_, notes_, following_;
};

}  // namespace

std::vector<Verdict> to_verdicts(const Course& course, const Step& step,
                                 const std::vector<int>& todos, const Findings& findings,
                                 const std::set<int>& untouched, bool cut_off,
                                 const std::set<int>& doubtful) {
  const Verdicts judged(course, findings, untouched, cut_off, doubtful);
  std::vector<Verdict> verdicts;
  for (const int todo : todos) verdicts.push_back(judged.of(todo));
  judged.add_earlier(step, verdicts);
  return verdicts;
}

}  // namespace checker

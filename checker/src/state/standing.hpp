#pragma once
/// The states of the student's TODOs, as far as they are known without judging.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "state/memory.hpp"

namespace checker {

struct TodoStatus {
  State state = State::open;
  bool stale = false;  ///< its file was edited since, or was never judged
  std::string note;    ///< "changed since it was judged", a reason; empty if the state says it all

  bool done() const { return state == State::done; }
  /// To be worked on, not only waiting for something.
  bool needs_work() const { return state == State::open || state == State::wrong || stale; }
};

using Standings = std::map<int, TodoStatus>;

/// One for each TODO of the course.
Standings standings(const Project& project, const Course& course, const Memory& memory);

/// The first TODO to work on; if all that are left wait for something, the first of these; none if
/// all are done. `after`: search from the TODO behind this one, and from the first one then.
std::optional<int> next_todo(const Standings& all, int after = 0);

/// Those of these TODOs that are not done.
std::vector<int> undone(std::vector<int> todos, const Standings& all);

/// How many of these TODOs are done.
size_t count_done(const Standings& all, const std::vector<int>& todos);

}  // namespace checker

#pragma once
/// A table of tasks that make nothing, to read options for.
#include <vector>

#include "tasks/registry.hpp"

namespace tasks {

inline std::shared_ptr<Task> make_nothing(const Options&, const Config&) { return nullptr; }

inline std::vector<Entry> some_entries() {
  return {{.name = "language_model",
           .summary = "words",
           .configs = {{"laptop", "epochs: 4\nbatch_size: 32\nwidth: 64\n"},
                       {"seed", "epochs: 5\nbatch_size: 128\nprecision: fp64\nwidth: 128\n"}},
           .keys = {"width", "rate"},
           .fast = {"loss", "norm"},
           .make = &make_nothing},
          {.name = "weather",
           .summary = "wind",
           .configs = {{"small", "epochs: 1\n"}},
           .keys = {},
           .make = &make_nothing}};
}

inline std::vector<Row> some_table() {
  std::vector<Row> table;
  for (const auto& entry : some_entries()) table.push_back({entry.name, [=] { return entry; }});
  return table;
}

}  // namespace tasks

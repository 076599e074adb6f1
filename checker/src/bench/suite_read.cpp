#include <algorithm>
#include <set>

#include "bench/suite.hpp"
#include "course/course.hpp"
#include "course/mapping.hpp"
#include "support/error.hpp"

namespace checker::bench {

namespace {

namespace fs = std::filesystem;

const std::vector<std::pair<const char*, Launch>> kLaunches{{"trainer", Launch::trainer},
                                                            {"program", Launch::program},
                                                            {"python", Launch::python},
                                                            {"workbook", Launch::workbook}};

// Every word of a column that a table can have.
const std::vector<std::string> kFigures{"step_ms",  "tokens_per_s", "samples_per_s",
                                        "peak_gib", "loss",         "seconds",
                                        "least_ms", "most_ms",      "steps"};

// 1, 2, 4, ... and all.
std::vector<size_t> doubling(size_t gpus) {
  std::vector<size_t> worlds;
  for (size_t ranks = 1; ranks < gpus; ranks *= 2) worlds.push_back(ranks);
  worlds.push_back(gpus);
  return worlds;
}

std::vector<size_t> worlds_of(const Mapping& row, const fs::path& file, size_t gpus) {
  if (!row.has("worlds")) return doubling(gpus);
  const auto node = row.node("worlds");
  if (node.IsScalar() && node.Scalar() == "most") return {gpus};
  if (!node.IsSequence()) fail(file, node.Mark(), "worlds must be a list of numbers, or: most.");
  auto worlds = row.list<size_t>("worlds");
  std::erase_if(worlds, [&](size_t ranks) { return ranks > gpus; });
  return worlds;
}

void check_figure(const fs::path& file, const YAML::Node& node, const std::string& figure) {
  if (std::ranges::find(kFigures, figure) != kFigures.end()) return;
  fail(file, node.Mark(), "unknown figure " + figure + did_you_mean(figure, kFigures));
}

SuiteRow row_of(const Mapping& row, const fs::path& file, const YAML::Node& node) {
  SuiteRow read{.label = row.line("label")};
  size_t launches = 0;
  for (const auto& [key, launch] : kLaunches) {
    if (!row.has(key)) continue;
    read.launch = launch;
    read.program = row.line(key);
    ++launches;
  }
  if (launches != 1) {
    fail(file, node.Mark(),
         "a row has exactly one of the keys trainer, program, python, workbook.");
  }
  if (row.has("arguments")) read.arguments = row.list<std::string>("arguments");
  if (row.has("group")) read.group = row.line("group");
  if (row.has("samples")) read.samples = row.node("samples").as<double>();
  if (row.has("seconds")) read.limit = std::chrono::seconds(row.node("seconds").as<int>());
  return read;
}

SuiteTable table_of(const fs::path& file, const YAML::Node& node, size_t gpus) {
  const Mapping table(file, node, {"title", "about", "columns", "compare", "rows"});
  SuiteTable read{.title = table.line("title"),
                  .about = table.text("about"),
                  .columns = table.list<std::string>("columns"),
                  .compare = table.has("compare") ? table.line("compare") : "",
                  .rows = {}};
  for (const auto& column : read.columns) check_figure(file, table.node("columns"), column);
  if (!read.compare.empty()) check_figure(file, table.node("compare"), read.compare);
  std::set<fs::path> places;
  for (const auto& entry : table.node("rows")) {
    const Mapping keys(file, entry,
                       {"label", "trainer", "program", "python", "workbook", "arguments", "worlds",
                        "group", "samples", "seconds"});
    auto row = row_of(keys, file, entry);
    for (const size_t ranks : worlds_of(keys, file, gpus)) {
      row.ranks = ranks;
      if (!places.insert(place_of(read, row)).second) {
        fail(file, entry.Mark(), "another row of this table has the label " + row.label + ".");
      }
      read.rows.push_back(row);
    }
  }
  return read;
}

}  // namespace

std::vector<SuiteTable> read_suite(const fs::path& file, size_t gpus) {
  const auto root = read_yaml(file);
  if (!root.IsSequence()) fail(file, root.Mark(), "a list of tables is expected here.");
  std::vector<SuiteTable> tables;
  try {
    for (const auto& node : root) tables.push_back(table_of(file, node, gpus));
  } catch (const YAML::Exception& error) {
    fail(file, error.mark, error.msg);
  }
  return tables;
}

std::vector<SuiteTable> read_suites(const fs::path& chapters, size_t gpus) {
  std::vector<SuiteTable> all;
  for (const auto& chapter : load_course(chapters).chapters) {
    const auto file = chapter.folder / "bench.yaml";
    if (!fs::exists(file)) continue;
    for (auto& table : read_suite(file, gpus)) all.push_back(std::move(table));
  }
  return all;
}

}  // namespace checker::bench

#include "golden/results.hpp"

#include <array>
#include <charconv>

#include "course/mapping.hpp"
#include "golden/compare.hpp"

namespace checker::golden {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kHeader =
    R"(# Golden results: what solutions 01 to 07 compute in 20 steps with config.yaml, by the machine that
# computed it. Made by ./workbook golden --update. A commit that changes results which stand here
# on purpose changes nothing else and says why. Of each rank: a hash of the file with its final
# parameters, a hash of the losses of all its batches, and the losses that it reported (training and
# validation of each epoch, test).
)";

Result read_result(const fs::path& file, const YAML::Node& node) {
  const Mapping mapping(file, node, {"parameters", "batches", "losses"});
  return {.parameters = mapping.line("parameters"),
          .batches = mapping.line("batches"),
          .losses = mapping.list<double>("losses")};
}

Entry read_entry(const fs::path& file, const YAML::Node& node) {
  std::vector<std::string> known{"results"};
  for (const auto& part : key_parts()) known.emplace_back(part.name);
  const Mapping mapping(file, node, known);
  Entry entry;
  for (const auto& part : key_parts()) {
    entry.key.*part.value = mapping.line(std::string(part.name));
  }
  const auto results = mapping.node("results");
  if (!results.IsMap()) fail(file, results.Mark(), "results must be a mapping (rank: result).");
  for (const auto& result : results) {
    const auto& name = result.first.Scalar();
    if (!entry.results.emplace(name, read_result(file, result.second)).second) {
      fail(file, result.first.Mark(), name + " stands here twice.");
    }
  }
  return entry;
}

}  // namespace

std::string shortest(double value) {
  std::array<char, 40> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

std::vector<Entry> read_entries(const fs::path& file) {
  std::vector<Entry> entries;
  if (!fs::exists(file)) return entries;
  const auto root = read_yaml(file);
  if (root.IsNull()) return entries;
  if (!root.IsSequence()) fail(file, root.Mark(), "a list (- torch: ...) is expected here.");
  for (const auto& node : root) {
    auto entry = read_entry(file, node);
    if (std::ranges::find(entries, entry.key, &Entry::key) != entries.end()) {
      fail(file, node.Mark(), "this machine's key stands here twice.");
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::string text_of(std::span<const Entry> entries) {
  std::string text(kHeader);
  for (const auto& entry : entries) {
    std::string begin = "- ";
    for (const auto& part : key_parts()) {
      text +=
          std::exchange(begin, "  ") + std::string(part.name) + ": " + entry.key.*part.value + "\n";
    }
    text += "  results:\n";
    for (const auto& [name, result] : entry.results) {
      std::vector<std::string> losses;
      for (const double loss : result.losses) losses.push_back(shortest(loss));
      text += "    " + name + ": {parameters: " + result.parameters +
              ", batches: " + result.batches + ", losses: [" + join(losses, ", ") + "]}\n";
    }
  }
  return text;
}

Update updated(std::span<const Entry> entries, const Entry& fresh) {
  const auto before = std::ranges::find(entries, fresh.key, &Entry::key);
  const bool changed = before != entries.end() && before->results != fresh.results;
  Update update;
  for (const auto& entry : entries) {
    if (entry.key == fresh.key) {
      update.entries.push_back(fresh);
    } else if (changed || !compare_losses(entry.results, fresh.results).wrong.empty()) {
      ++update.dropped;
    } else {
      update.entries.push_back(entry);
    }
  }
  if (before == entries.end()) update.entries.push_back(fresh);
  return update;
}

}  // namespace checker::golden

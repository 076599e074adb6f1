#include "ladder/catalogue.hpp"

#include <charconv>
#include <set>

#include "ladder/mapping.hpp"
#include "support/error.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

// Read as it is: blanks at the beginning belong to it.
std::string raw(const fs::path& file, const Mapping& mapping, const std::string& key) {
  const auto node = mapping.node(key);
  if (!node.IsScalar()) fail(file, node.Mark(), key + " must be a text.");
  return node.Scalar();
}

CatalogueEntry read_entry(const fs::path& file, const YAML::Node& node, int todo, bool wrong) {
  const std::string words = wrong ? "belief" : "because";
  const Mapping mapping(file, node, {"name", words, "edits", "quick"});
  CatalogueEntry entry{.todo = todo,
                       .wrong = wrong,
                       .name = mapping.line("name"),
                       .words = mapping.text(words),
                       .edits = {},
                       .quick = mapping.has("quick") && mapping.node("quick").as<bool>()};
  for (const auto& item : mapping.node("edits")) {
    const Mapping edit(file, item, {"replace", "with", "all"});
    entry.edits.push_back({.replace = raw(file, edit, "replace"),
                           .with = raw(file, edit, "with"),
                           .all = edit.has("all") && edit.node("all").as<bool>()});
  }
  if (entry.edits.empty()) fail(file, node.Mark(), entry.name + " edits nothing.");
  return entry;
}

std::vector<CatalogueEntry> read_entries(const fs::path& file, bool wrong) {
  int todo = 0;
  const auto stem = file.stem().string();
  std::from_chars(stem.data(), stem.data() + stem.size(), todo);
  if (file.extension() != ".yaml" || todo == 0) {
    throw Error(file.string() + ": a catalogue file is named after its TODO, 07.yaml.");
  }
  const auto list = read_yaml(file);
  if (!list.IsSequence()) fail(file, list.Mark(), "a list of entries is expected here.");
  std::vector<CatalogueEntry> entries;
  for (const auto& node : list) entries.push_back(read_entry(file, node, todo, wrong));
  return entries;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) {
    ++found;
  }
  return found;
}

}  // namespace

std::vector<CatalogueEntry> load_catalogue(const fs::path& folder) {
  std::vector<CatalogueEntry> entries;
  std::set<std::string> names;
  for (const bool wrong : {true, false}) {
    for (const auto& file : fs::directory_iterator(folder / (wrong ? "wrong" : "variants"))) {
      for (auto& entry : read_entries(file.path(), wrong)) {
        if (!names.insert(entry.name).second) {
          throw Error(file.path().string() + ": the name " + entry.name + " is taken.");
        }
        entries.push_back(std::move(entry));
      }
    }
  }
  // By TODO, wrong edits first, each in the order of its file.
  std::ranges::stable_sort(entries, {}, &CatalogueEntry::todo);
  return entries;
}

std::string apply(const CatalogueEntry& entry, std::string text) {
  for (const auto& edit : entry.edits) {
    const size_t found = count(text, edit.replace);
    if (found == 0 || (found > 1 && !edit.all)) {
      throw Error("catalogue, TODO " + std::to_string(entry.todo) + ", " + entry.name +
                  ": the text to replace occurs " + std::to_string(found) +
                  " times in the solution:\n" + edit.replace);
    }
    size_t at = text.find(edit.replace);
    while (at != text.npos) {
      text.replace(at, edit.replace.size(), edit.with);
      at = edit.all ? text.find(edit.replace, at + edit.with.size()) : text.npos;
    }
  }
  return text;
}

}  // namespace checker

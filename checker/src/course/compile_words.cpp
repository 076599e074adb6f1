#include "course/compile_words.hpp"

#include <algorithm>
#include <regex>

#include "course/mapping.hpp"
#include "support/error.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

constexpr const char* kFile = "compile_errors.yaml";
// A regular expression's search goes as deep as the text is long, and nobody vouches for the text.
constexpr size_t kLongest = 2000;

// The step's chapter first, then those that it builds on.
std::vector<const Chapter*> chapters_below(const Course& course, const Step& step) {
  std::vector<const Chapter*> chapters;
  for (const auto* at = &step;; at = &course.step(at->parent)) {
    const auto& chapter = course.chapter_of(*at);
    if (std::ranges::find(chapters, &chapter) == chapters.end()) chapters.push_back(&chapter);
    if (at->parent.empty()) return chapters;
  }
}

std::vector<std::regex> read_all(const fs::path& file, const YAML::Node& node) {
  if (node.IsScalar()) return {read_regex(file, node)};
  std::vector<std::regex> all;
  for (const auto& one : node) all.push_back(read_regex(file, one));
  return all;
}

std::optional<std::regex> read_one(const fs::path& file, const Mapping& entry,
                                   const std::string& key) {
  if (!entry.has(key)) return std::nullopt;
  return read_regex(file, entry.node(key));
}

// A place in a text that not all expressions fill would show only once such an error comes.
void check_places(const fs::path& file, const YAML::Node& node, const Template& text,
                  const std::vector<std::regex>& errors) {
  for (const auto& name : text.names()) {
    for (const auto& error : errors) {
      if (static_cast<unsigned>(whole_number(name, 0)) - 1 < error.mark_count()) continue;
      fail(file, node.Mark(), "{" + name + "}: not every expression of error has such brackets.");
    }
  }
}

// GCC's quotation marks are those of the language in which it speaks.
std::string plain(const std::string& text) {
  return replaced(replaced(text.substr(0, kLongest), "\u2018", "'"), "\u2019", "'");
}

}  // namespace

CompileWords::CompileWords(const Course& course, const Step& step) {
  const auto chapters = chapters_below(course, step);
  for (const auto* chapter : chapters) add(chapter->folder / kFile);
  add(chapters.front()->folder.parent_path() / kFile);
}

void CompileWords::add(const fs::path& file) {
  if (!fs::exists(file)) return;
  const Mapping all(file, read_yaml(file), {"errors"});
  for (const auto& node : all.node("errors")) {
    const Mapping entry(file, node,
                        {"error", "line", "at", "notes", "what", "fix", "todo", "line_before"});
    entries_.push_back(
        {.errors = read_all(file, entry.node("error")),
         .line = read_one(file, entry, "line"),
         .at = read_one(file, entry, "at"),
         .notes = read_one(file, entry, "notes"),
         .what = Template(replaced(entry.text("what"), "\n", " ")),
         .fix = Template(replaced(entry.text("fix"), "\n", " ")),
         .todo = entry.has("todo") ? todo_labelled(entry.line("todo")).value_or(0) : 0,
         .line_before = entry.has("line_before") && entry.node("line_before").as<bool>(),
         .place = place_of(file, node.Mark())});
    for (const auto* text : {&entries_.back().what, &entries_.back().fix}) {
      check_places(file, node, *text, entries_.back().errors);
    }
  }
}

std::optional<CompileMeaning> CompileWords::meaning_of(const CompilerWords& words) const {
  const auto message = plain(words.message), line = plain(words.line), at = plain(words.at);
  const auto noted = [&](const std::regex& pattern) {
    return std::ranges::any_of(words.notes, [&](const std::string& note) {
      return std::regex_search(plain(note), pattern);
    });
  };
  for (const auto& entry : entries_) {
    if (entry.line && !std::regex_search(line, *entry.line)) continue;
    if (entry.at && !std::regex_search(at, *entry.at)) continue;
    if (entry.notes && !noted(*entry.notes)) continue;
    for (const auto& error : entry.errors) {
      std::smatch match;
      if (std::regex_search(message, match, error)) return filled(entry, values_of(match));
    }
  }
  return std::nullopt;
}

CompileMeaning CompileWords::filled(const Entry& entry, const Values& values) try {
  return {.what = entry.what.fill(values),
          .fix = entry.fix.fill(values),
          .todo = entry.todo,
          .line_before = entry.line_before};
} catch (const Error& error) {
  throw Error(entry.place + ": " + error.what());
}

}  // namespace checker

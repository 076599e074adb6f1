// Reads the catalogue and holds it against the course.
#include "course/catalogue.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "course/mapping.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

// An edit's keys: of its marks, and of the texts that it has besides.
struct Keys {
  Edit::Form form;
  std::string marks;
  std::vector<std::string> texts;  ///< what comes in is the last, a fragment the first of two
};

const std::array<Keys, 5> kForms{{{Edit::Form::replace, "replace", {"with"}},
                                  {Edit::Form::remove, "remove", {}},
                                  {Edit::Form::before, "before", {"insert"}},
                                  {Edit::Form::after, "after", {"insert"}},
                                  {Edit::Form::change, "in", {"change", "to"}}}};

const std::vector<std::string> kAllKeys{"replace", "with", "remove", "before", "after",
                                        "insert",  "in",   "change", "to"};

// Read as it is: blanks at the beginning belong to it. What a fragment is changed to may be empty.
std::string raw(const fs::path& file, const Mapping& mapping, const std::string& key) {
  const auto node = mapping.node(key);
  if (!node.IsScalar() || (key != "to" && trim(node.Scalar()).empty())) {
    fail(file, node.Mark(), key + " must be a text.");
  }
  return node.Scalar();
}

std::vector<std::string> read_marks(const fs::path& file, const Mapping& mapping,
                                    const std::string& key) {
  const auto node = mapping.node(key);
  if (node.IsScalar()) return {node.Scalar()};
  if (!node.IsSequence() || node.size() == 0) {
    fail(file, node.Mark(), key + " must be a mark, or a list of marks.");
  }
  return mapping.list<std::string>(key);
}

const Keys& keys_of(const fs::path& file, const YAML::Node& node) {
  const Mapping mapping(file, node, kAllKeys);
  const Keys* found = nullptr;
  for (const auto& keys : kForms) {
    if (!mapping.has(keys.marks)) continue;
    if (found) fail(file, node.Mark(), found->marks + " and " + keys.marks + " are two edits.");
    found = &keys;
  }
  if (!found) fail(file, node.Mark(), "an edit begins with replace, remove, before, after or in.");
  return *found;
}

Edit read_edit(const fs::path& file, const YAML::Node& node, const std::string& entry) {
  const auto& keys = keys_of(file, node);
  auto known = keys.texts;
  known.push_back(keys.marks);
  const Mapping mapping(file, node, known);
  return {.form = keys.form,
          .marks = read_marks(file, mapping, keys.marks),
          .fragment = keys.texts.size() > 1 ? raw(file, mapping, keys.texts.front()) : "",
          .text = keys.texts.empty() ? "" : raw(file, mapping, keys.texts.back()),
          .where = place_of(file, node.Mark()) + ": " + entry};
}

const std::vector<std::string> kStates{"open", "done", "wrong", "not_judged"};

// How each TODO of the step must stand, all of them said.
std::map<int, std::string> read_states(const fs::path& file, const Mapping& mapping,
                                       const std::vector<int>& todos) {
  const auto node = mapping.node("states");
  std::map<int, std::string> states;
  for (const auto& entry : node) {
    const auto state = entry.second.as<std::string>();
    if (std::ranges::find(kStates, state) == kStates.end()) {
      fail(file, entry.second.Mark(), "unknown state " + state + did_you_mean(state, kStates));
    }
    states[entry.first.as<int>()] = state;
  }
  const auto is_named = [&](int todo) { return states.contains(todo); };
  if (states.size() != todos.size() || !std::ranges::all_of(todos, is_named)) {
    fail(file, node.Mark(), "states must name each TODO of the step.");
  }
  return states;
}

CatalogueEntry read_entry(const fs::path& file, const YAML::Node& node, int todo, EntryKind kind,
                          const Course& course) {
  const std::string words = kind == EntryKind::wrong ? "belief" : "because";
  std::vector<std::string> known{"name", words, "edits", "quick"};
  if (kind == EntryKind::unfinished) known.insert(known.end(), {"states", "finding"});
  const Mapping mapping(file, node, known);
  CatalogueEntry entry{.todo = todo,
                       .kind = kind,
                       .name = mapping.line("name"),
                       .words = mapping.text(words),
                       .edits = {},
                       .quick = mapping.has("quick") && mapping.node("quick").as<bool>(),
                       .where = place_of(file, node.Mark())};
  for (const auto& item : mapping.node("edits")) {
    entry.edits.push_back(read_edit(file, item, entry.name));
  }
  if (entry.edits.empty()) fail(file, node.Mark(), entry.name + " edits nothing.");
  if (kind == EntryKind::unfinished) {
    entry.states = read_states(file, mapping, course.step(course.todos.at(todo).step).todos);
    if (mapping.has("finding")) entry.finding = mapping.line("finding");
    const auto& known_words = course.chapter_of(course.step_of(course.todos.at(todo))).words;
    if (!entry.finding.empty() && !known_words.contains(entry.finding)) {
      fail(file, mapping.node("finding").Mark(),
           "there is no finding " + entry.finding + did_you_mean(entry.finding, known_words.ids()));
    }
  }
  return entry;
}

std::vector<CatalogueEntry> read_entries(const fs::path& file, EntryKind kind,
                                         const Course& course) {
  const int todo = todo_labelled(file.stem().string()).value_or(0);
  if (file.extension() != ".yaml" || todo == 0) {
    throw Error(file.string() + ": a catalogue file is named after its TODO, 07.yaml.");
  }
  if (!course.todos.contains(todo)) {
    throw Error(file.string() + ": there is no " + name_of_todo(todo) + ".");
  }
  const auto list = read_yaml(file);
  if (!list.IsSequence()) fail(file, list.Mark(), "a list of entries is expected here.");
  std::vector<CatalogueEntry> entries;
  for (const auto& node : list) entries.push_back(read_entry(file, node, todo, kind, course));
  return entries;
}

void check_marks(const CatalogueEntry& entry, const Course& course) {
  const auto marks = course.source_of(course.todos.at(entry.todo)).source.marks();
  const std::vector<std::string> known(marks.begin(), marks.end());
  for (const auto& edit : entry.edits) {
    for (const auto& mark : edit.marks) {
      if (marks.contains(mark)) continue;
      throw Error(edit.where + ": unknown mark " + mark + did_you_mean(mark, known));
    }
  }
}

// What replaces or removes a mark leaves nothing for others to edit, and of two texts above a mark
// nobody knows which comes first.
void check_together(const CatalogueEntry& entry) {
  const auto whole = [](const Edit& edit) {
    return edit.form == Edit::Form::replace || edit.form == Edit::Form::remove;
  };
  std::map<std::string, std::vector<const Edit*>> by_mark;
  for (const auto& edit : entry.edits) {
    for (const auto& mark : edit.marks) {
      for (const auto* other : by_mark[mark]) {
        if (edit.form != other->form && !whole(edit) && !whole(*other)) continue;
        throw Error(edit.where + ": this edit of " + mark + " contradicts an earlier one.");
      }
      by_mark[mark].push_back(&edit);
    }
  }
}

}  // namespace

std::vector<RenderedLine> lines_for(const CatalogueEntry& entry, const Course& course,
                                    Rendering which) {
  const auto& todo = course.todos.at(entry.todo);
  return render_lines(course, course.source_of(todo), course.step_of(todo), which);
}

std::vector<CatalogueEntry> load_catalogue(const fs::path& folder, const Course& course) {
  std::vector<CatalogueEntry> entries;
  std::set<std::string> names;
  for (const auto& [kind, name] : {std::pair{EntryKind::wrong, "wrong"},
                                   {EntryKind::variant, "variants"},
                                   {EntryKind::unfinished, "unfinished"}}) {
    const bool unfinished = kind == EntryKind::unfinished;
    if (!fs::exists(folder / name)) continue;
    for (const auto& file : fs::directory_iterator(folder / name)) {
      for (auto& entry : read_entries(file.path(), kind, course)) {
        if (!names.insert(entry.name).second) {
          throw Error(entry.where + ": the name " + entry.name + " is taken.");
        }
        check_marks(entry, course);
        check_together(entry);
        apply_edits(entry,
                    lines_for(entry, course, unfinished ? Rendering::step : Rendering::solution));
        entries.push_back(std::move(entry));
      }
    }
  }
  // By TODO, wrong edits first, each in the order of its file.
  std::ranges::stable_sort(entries, {}, &CatalogueEntry::todo);
  return entries;
}

std::vector<CatalogueEntry> load_catalogue(const Course& course) {
  std::vector<CatalogueEntry> all;
  for (const auto& chapter : course.chapters) {
    for (auto& entry : load_catalogue(chapter.folder / "catalogue", course)) {
      const auto same = std::ranges::find(all, entry.name, &CatalogueEntry::name);
      if (same != all.end()) throw Error(entry.where + ": the name " + entry.name + " is taken.");
      all.push_back(std::move(entry));
    }
  }
  return all;
}

}  // namespace checker

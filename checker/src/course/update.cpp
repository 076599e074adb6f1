#include "course/update.hpp"

#include <sstream>

#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

// What the last rendering wrote, so that a student's edit is told from an older rendering. It is
// committed: a fresh clone knows it as well.
const fs::path note = "steps/.rendered";

std::string make_note(const RenderedFiles& files) {
  std::string text = "# Fingerprints of the files as rendered; written by: checker render\n";
  for (const auto& [file, content] : files) {
    text += fingerprint(content) + " " + file.generic_string() + "\n";
  }
  return text;
}

std::map<fs::path, std::string> read_note(const fs::path& folder) {
  std::map<fs::path, std::string> fingerprints;
  if (!fs::exists(folder / note)) return fingerprints;
  for (const auto& line : split_lines(read_file(folder / note))) {
    const auto blank = line.find(' ');
    if (!line.starts_with('#') && blank != line.npos) {
      fingerprints[line.substr(blank + 1)] = line.substr(0, blank);
    }
  }
  return fingerprints;
}

fs::path numbered(const fs::path& file, int number, std::string_view before) {
  const std::string infix = number == 1 ? "" : "." + std::to_string(number);
  return file.string() + infix + ".before-" + std::string(before);
}

}  // namespace

fs::path name_beside(const fs::path& file, std::string_view before) {
  for (int number = 1;; ++number) {
    auto name = numbered(file, number, before);
    if (!fs::exists(name)) return name;
  }
}

std::optional<fs::path> last_beside(const fs::path& file, std::string_view before) {
  std::optional<fs::path> last;
  for (int number = 1; fs::exists(numbered(file, number, before)); ++number) {
    last = numbered(file, number, before);
  }
  return last;
}

Update update_files(const RenderedFiles& files, const fs::path& folder) {
  Update update;
  const auto rendered = read_note(folder);
  const auto keep_edit = [&](const fs::path& file, const std::string& present) {
    const auto before = rendered.find(file);
    if (before != rendered.end() && before->second == fingerprint(present)) return;
    const auto beside = name_beside(folder / file);
    fs::copy_file(folder / file, beside);
    update.kept.emplace_back(file, file.parent_path() / beside.filename());
  };
  for (const auto& [file, content] : files) {
    if (fs::exists(folder / file)) {
      const auto present = read_file(folder / file);
      if (present == content) continue;
      keep_edit(file, present);
    }
    write_file(folder / file, content);
    update.written.push_back(file);
  }
  for (const auto& [file, ignored] : rendered) {
    if (files.contains(file) || !fs::exists(folder / file)) continue;
    keep_edit(file, read_file(folder / file));
    fs::remove(folder / file);
    update.removed.push_back(file);
  }
  const auto new_note = make_note(files);
  if (!fs::exists(folder / note) || read_file(folder / note) != new_note) {
    write_file(folder / note, new_note);
  }
  return update;
}

std::vector<std::string> find_differences(const RenderedFiles& files, const fs::path& folder) {
  std::vector<std::string> differences;
  auto expected = files;
  expected[note] = make_note(files);
  for (const auto& [file, content] : expected) {
    if (!fs::exists(folder / file)) {
      differences.push_back(file.string() + ": missing");
    } else if (read_file(folder / file) != content) {
      differences.push_back(file.string() + ": differs");
    }
  }
  for (const auto& [file, ignored] : read_note(folder)) {
    if (!files.contains(file) && fs::exists(folder / file)) {
      differences.push_back(file.string() + ": no longer part of the course");
    }
  }
  return differences;
}

}  // namespace checker

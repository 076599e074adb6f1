#include "state/merge.hpp"

#include <cctype>

#include "process/capture.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {

namespace {

enum class Letter { word, blank, other };

Letter kind_of(char letter) {
  const auto code = static_cast<unsigned char>(letter);
  if (std::isalnum(code) != 0 || letter == '_' || code >= 0x80) return Letter::word;
  return std::isspace(code) != 0 ? Letter::blank : Letter::other;
}

// A line for each word, each run of blanks and each other letter: then git, which merges lines,
// merges words.
std::string in_lines(const std::string& text) {
  std::string lines;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') {
      lines += "\\n";
    } else if (text[i] == '\\') {
      lines += "\\\\";
    } else {
      lines += text[i];
    }
    const auto kind = kind_of(text[i]);
    const bool goes_on =
        i + 1 < text.size() && kind != Letter::other && kind_of(text[i + 1]) == kind;
    if (!goes_on) lines += '\n';
  }
  return lines;
}

std::string from_lines(const std::string& lines) {
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i] == '\n') continue;
    if (lines[i] != '\\' || i + 1 == lines.size()) {
      text += lines[i];
    } else {
      text += lines[++i] == 'n' ? '\n' : lines[i];
    }
  }
  return text;
}

// git's conflicts, decided: the student's words stay, and where both only added, both do.
std::string decided(const std::string& merged) {
  std::string lines;
  std::string mine, old_words, theirs;
  std::string* part = &lines;
  for (const auto& line : split_lines(merged)) {
    if (line.starts_with("<<<<<<<")) {
      mine.clear(), old_words.clear(), theirs.clear();
      part = &mine;
    } else if (line.starts_with("|||||||")) {
      part = &old_words;
    } else if (line.starts_with("=======")) {
      part = &theirs;
    } else if (line.starts_with(">>>>>>>")) {
      lines += mine + (old_words.empty() ? theirs : "");
      part = &lines;
    } else {
      *part += line + "\n";
    }
  }
  return lines;
}

}  // namespace

std::string merged_by_words(const std::string& edited, const std::string& old_text,
                            const std::string& new_text) {
  const TemporaryFolder folder;
  write_file(folder.path() / "edited", in_lines(edited));
  write_file(folder.path() / "old", in_lines(old_text));
  write_file(folder.path() / "new", in_lines(new_text));
  const auto merged =
      capture({.arguments = {"git", "merge-file", "--diff3", "edited", "old", "new"},
               .environment = {},
               .directory = folder.path()});
  // It exits with the number of conflicts, or above 127.
  if (merged.status > 127) {
    throw Error("git merge-file failed: " + std::string(trim(merged.output)));
  }
  return from_lines(decided(read_file(folder.path() / "edited")));
}

}  // namespace checker

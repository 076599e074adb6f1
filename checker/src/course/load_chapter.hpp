#pragma once
/// Reading one chapter's folder.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "course/course.hpp"

namespace checker {

struct LoadedChapter {
  Chapter chapter;
  std::vector<Step> steps;
  std::map<int, Todo> todos;
};

/// Reads chapter.yaml, todos/*.yaml and the sources of this folder, and checks each by itself.
/// before: the step that a first step without a parent of its own starts from; may be empty.
/// Throws Error "file:line: what".
LoadedChapter load_chapter(const std::filesystem::path& folder, const std::string& before);

/// chapters/x/todos/07.yaml
std::filesystem::path todo_file(const std::filesystem::path& chapter, int number);

}  // namespace checker

#include "course/picture.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "support/markup.hpp"
#include "support/text.hpp"

namespace checker {
namespace {

// In user units; text is set for a tread of this width.
constexpr int tread = 150, rise = 46, margin = 14, top = 60, line_height = 16;
constexpr size_t letters_in_tread = 20, letters_in_name = 18;

constexpr const char* picture_style = R"(
    text { font-family: system-ui, sans-serif; font-size: 13px; }
    .title { fill: #24292f; }
    .name { fill: #ffffff; font-weight: 600; font-size: 12px; }
    .todo { fill: #d5e6f7; font-size: 12px; }
    .stair { fill: #1f5f99; }
    @media (prefers-color-scheme: dark) { .title { fill: #e6edf3; } }
  )";

void add_text_at(pugi::xml_node svg, int x, int y, const char* css_class, const std::string& text) {
  markup::add(svg, "text",
              {{"x", std::to_string(x)}, {"y", std::to_string(y)}, {"class", css_class}}, text);
}

std::string todo_range(const Step& step) {
  if (step.todos.empty()) return "read and run";
  const auto [first, last] = std::minmax_element(step.todos.begin(), step.todos.end());
  if (*first == *last) return name_of_todo(*first);
  return name_of_todo(*first) + "–" + label_of_todo(*last);
}

// A long name goes on below, after one of its words.
std::vector<std::string> lines_of(const std::string& name) {
  if (name.size() <= letters_in_name) return {name};
  const auto end = name.rfind('_', letters_in_name - 1);
  if (end == std::string::npos) return {name};
  return {name.substr(0, end + 1), name.substr(end + 1)};
}

void add_stair(pugi::xml_node svg, const Step& step, int index, size_t count) {
  const int x = margin + index * tread;
  const int y = top + static_cast<int>(count - 1 - static_cast<size_t>(index)) * rise;
  const int bottom = top + static_cast<int>(count) * rise;
  markup::add(svg, "rect",
              {{"x", std::to_string(x)},
               {"y", std::to_string(y)},
               {"width", std::to_string(tread - 4)},
               {"height", std::to_string(bottom - y)},
               {"rx", "3"},
               {"class", "stair"}});
  const auto title = wrap(step.title, letters_in_tread);
  int line = y - 10 - line_height * static_cast<int>(title.size() - 1);
  for (const auto& words : title) {
    add_text_at(svg, x + 2, line, "title", words);
    line += line_height;
  }
  line = y + 20;
  for (const auto& words : lines_of(step.name)) {
    add_text_at(svg, x + 10, line, "name", words);
    line += line_height + 1;
  }
  add_text_at(svg, x + 10, line, "todo", todo_range(step));
}

}  // namespace

std::string picture(const Course& course) {
  auto steps = course.steps;
  std::erase_if(steps, [](const Step& step) { return step.is_beside(); });
  const size_t count = steps.size();
  const int width = 2 * margin + tread * static_cast<int>(count);
  const int height = top + rise * static_cast<int>(count) + margin;
  pugi::xml_document document;
  auto svg = markup::begin_picture(document, width, height, "The steps of the course as stairs",
                                   picture_style);
  for (size_t i = 0; i < count; ++i) add_stair(svg, steps[i], static_cast<int>(i), count);
  return markup::to_svg(document);
}

}  // namespace checker

#include "course/picture.hpp"

#include <algorithm>

#include "support/text.hpp"

namespace checker {
namespace {

// In user units; text is set for a tread of this width.
constexpr int tread = 150, rise = 46, margin = 14, top = 60, line_height = 16;
constexpr size_t letters_in_tread = 20;

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else {
      result += c;
    }
  }
  return result;
}

std::string text_at(int x, int y, const std::string& style, const std::string& text) {
  return "  <text x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\" class=\"" +
         style + "\">" + escaped(text) + "</text>\n";
}

std::string todo_range(const Step& step) {
  if (step.todos.empty()) return "read and run";
  const auto [first, last] = std::minmax_element(step.todos.begin(), step.todos.end());
  if (*first == *last) return "TODO " + std::to_string(*first);
  return "TODO " + std::to_string(*first) + "–" + std::to_string(*last);
}

std::string stair(const Step& step, int index, size_t count) {
  const int x = margin + index * tread;
  const int y = top + static_cast<int>(count - 1 - static_cast<size_t>(index)) * rise;
  const int bottom = top + static_cast<int>(count) * rise;
  std::string svg = "  <rect x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) +
                    "\" width=\"" + std::to_string(tread - 4) + "\" height=\"" +
                    std::to_string(bottom - y) + "\" rx=\"3\" class=\"stair\"/>\n";
  const auto title = wrap(step.title, letters_in_tread);
  int line = y - 10 - line_height * static_cast<int>(title.size() - 1);
  for (const auto& words : title) {
    svg += text_at(x + 2, line, "title", words);
    line += line_height;
  }
  svg += text_at(x + 10, y + 20, "name", step.name);
  svg += text_at(x + 10, y + 37, "todo", todo_range(step));
  return svg;
}

}  // namespace

std::string picture(const Course& course) {
  const size_t count = course.steps.size();
  const int width = 2 * margin + tread * static_cast<int>(count);
  const int height = top + rise * static_cast<int>(count) + margin;
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " +
                    std::to_string(width) + " " + std::to_string(height) +
                    "\" role=\"img\" aria-label=\"The steps of the course as stairs\">\n"
                    "  <style>\n"
                    "    text { font-family: system-ui, sans-serif; font-size: 13px; }\n"
                    "    .title { fill: #24292f; }\n"
                    "    .name { fill: #ffffff; font-weight: 600; font-size: 12px; }\n"
                    "    .todo { fill: #d5e6f7; font-size: 12px; }\n"
                    "    .stair { fill: #1f5f99; }\n"
                    "    @media (prefers-color-scheme: dark) { .title { fill: #e6edf3; } }\n"
                    "  </style>\n";
  for (size_t i = 0; i < count; ++i) svg += stair(course.steps[i], static_cast<int>(i), count);
  return svg + "</svg>\n";
}

}  // namespace checker

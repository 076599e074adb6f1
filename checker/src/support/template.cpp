#include "support/template.hpp"

#include <functional>

#include "support/error.hpp"

namespace checker {

namespace {

// Calls `plain` with what stands between places, and `place` with what stands in one.
void walk(const std::string& text, const std::function<void(std::string_view)>& plain,
          const std::function<void(std::string_view)>& place) {
  const std::string_view all = text;
  size_t at = 0;
  while (at < all.size()) {
    const auto open = all.find('{', at);
    plain(all.substr(at, open - at));
    if (open == all.npos) return;
    const auto close = all.find('}', open);
    if (close == all.npos) throw Error("a { without a } in: " + text);
    place(all.substr(open + 1, close - open - 1));
    at = close + 1;
  }
}

std::string_view name_in(std::string_view place) { return place.substr(0, place.find('?')); }

// word:words
std::string_view word_for(std::string_view words, size_t count) {
  const auto colon = words.find(':');
  if (colon == words.npos) throw Error("{name?word:words} expected, got ?" + std::string(words));
  return count == 1 ? words.substr(0, colon) : words.substr(colon + 1);
}

}  // namespace

Template::Template(std::string text) : text_(std::move(text)) {
  walk(
      text_, [](std::string_view) {},
      [](std::string_view place) {
        if (const auto mark = place.find('?'); mark != place.npos)
          word_for(place.substr(mark + 1), 1);
      });
}

std::string Template::fill(const Values& values) const {
  std::string filled;
  walk(
      text_, [&](std::string_view plain) { filled += plain; },
      [&](std::string_view place) {
        const auto name = name_in(place);
        const auto value = values.find(name);
        if (value == values.end()) {
          throw Error("no value for {" + std::string(name) + "} in: " + text_);
        }
        if (name.size() == place.size()) {
          filled += value->second.text;
        } else {
          filled += word_for(place.substr(name.size() + 1), value->second.count);
        }
      });
  return filled;
}

std::vector<std::string> Template::names() const {
  std::vector<std::string> names;
  walk(
      text_, [](std::string_view) {},
      [&](std::string_view place) { names.emplace_back(name_in(place)); });
  return names;
}

}  // namespace checker

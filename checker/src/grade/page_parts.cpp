#include "grade/page_parts.hpp"

#include <algorithm>

#include "grade/class_report.hpp"
#include "support/markup.hpp"
#include "support/text.hpp"

namespace checker::grade::page {

namespace {

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --line: #8884; --done: #2e8b57; --wrong: #c0392b; --soft: #888; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
table { border-collapse: collapse; } th { font-weight: 500; text-align: left; }
.grid { font-size: 13px; } .grid td, .grid thead th { text-align: center; min-width: 1.5rem; padding: 1px 3px; border-bottom: 1px solid var(--line); }
@media (max-width: 70rem) { .grid { display: block; overflow-x: auto; } }
.grid thead th { position: sticky; top: 0; background: Canvas; } .grid .name { text-align: left; padding-right: 1rem; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
.grid .points { text-align: right; padding-right: .7rem; font-variant-numeric: tabular-nums; } .grid .first { border-left: 1px solid var(--line); }
.done { color: var(--done); } .wrong { color: #fff; background: var(--wrong); } .open, .waits, .missing, .ungraded { color: var(--soft); }
.legend span { display: inline-block; min-width: 1.4em; text-align: center; margin-left: 1em; }
.todos td, .todos th { padding: 2px 1rem 2px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
.bar { display: inline-block; width: 8rem; height: .7em; background: var(--line); margin-right: .5em; } .bar i { display: block; height: 100%; background: var(--done); }
.student { border-bottom: 1px solid var(--line); padding: .3rem 0; } summary { cursor: pointer; overflow-wrap: anywhere; } small { color: var(--soft); }
.finding { border-left: 3px solid var(--wrong); padding-left: .8rem; margin: .8rem 0; overflow-wrap: anywhere; } .finding p { margin: .3rem 0; } pre { overflow-x: auto; }
svg { width: 100%; height: auto; font-size: 11px; } svg text { fill: currentColor; } svg .c { fill: #4a7fb5; } svg .w { fill: var(--wrong); } svg .s { stroke: var(--done); }
)";

// A link from the grid opens what it leads to.
constexpr const char* kScript = R"(
const open = () => { const at = document.getElementById(location.hash.slice(1)); if (at) { at.open = true; at.scrollIntoView(); } };
addEventListener('hashchange', open); open();
)";

double end_of(const Timeline& timeline) {
  double end = 1e-6;
  for (const auto& rank : timeline.ranks) {
    for (const auto& span : rank) end = std::max(end, span.end);
  }
  return end;
}

}  // namespace

std::string whole(const std::string& title, const pugi::xml_document& body) {
  return markup::to_page(title, kStyle, body, kScript);
}

std::string printable(const std::string& text) {
  std::string shown;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    shown += shown_name(text.substr(begin, end - begin), 20'000);
    if (end < text.size()) shown += '\n';
    begin = end + 1;
  }
  return shown;
}

std::string words(const std::string& id) {
  auto text = id;
  std::ranges::replace(text, '_', ' ');
  return text;
}

void add_list(pugi::xml_node parent, const std::vector<std::string>& lines) {
  auto list = markup::add(parent, "ul");
  for (const auto& line : lines) markup::add(list, "li", printable(line));
}

void add_bar(pugi::xml_node parent, size_t part, size_t whole) {
  const double share =
      whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  auto bar = markup::add(parent, "span", {{"class", "bar"}});
  markup::add(bar, "i", {{"style", "width:" + fixed(share, 0) + "%"}});
  markup::add_text(parent, std::to_string(part) + " of " + std::to_string(whole));
}

void add_picture(pugi::xml_node parent, const Timeline& timeline) {
  constexpr double left = 60, width = 1000, row = 22;
  const double end = end_of(timeline);
  const double height = row * static_cast<double>(timeline.ranks.size()) + 18;
  markup::add(markup::add(parent, "p"), "small",
              "The collectives of world size " + std::to_string(timeline.ranks.size()) + " over " +
                  fixed(end * 1e3, 0) + " ms; red: did not end.");
  auto svg =
      markup::add(parent, "svg", {{"viewBox", "0 0 1070 " + fixed(height, 0)}, {"role", "img"}});
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    const double top = row * static_cast<double>(rank) + 3;
    markup::add(svg, "text", {{"x", "0"}, {"y", fixed(top + 13, 0)}},
                "rank " + std::to_string(rank));
    for (const auto& span : timeline.ranks[rank]) {
      const double wide = std::max(1.0, width * (span.end - span.begin) / end);
      auto mark = markup::add(svg, "rect",
                              {{"class", span.ended ? "c" : "w"},
                               {"x", fixed(left + width * span.begin / end, 1)},
                               {"y", fixed(top, 0)},
                               {"width", fixed(wide, 1)},
                               {"height", "16"}});
      markup::add(mark, "title",
                  printable(span.what) + ", " + fixed(span.begin * 1e3, 1) + " to " +
                      fixed(span.end * 1e3, 1) + " ms" + (span.ended ? "" : ", did not end"));
    }
  }
}

}  // namespace checker::grade::page

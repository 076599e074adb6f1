#include "bench/canvas.hpp"

#include "support/text.hpp"

namespace checker::bench {

namespace {

constexpr const char* kStyle = R"(
    text { font-family: system-ui, sans-serif; font-size: 12px; fill: #24292f; }
    .axis { stroke: #8c959f; }
    @media (prefers-color-scheme: dark) { text { fill: #e6edf3; } }
  )";

}  // namespace

void add_text_at(pugi::xml_node svg, double x, double y, const std::string& text,
                 const char* anchor) {
  markup::add(svg, "text", {{"x", fixed(x, 1)}, {"y", fixed(y, 1)}, {"text-anchor", anchor}}, text);
}

void add_line(pugi::xml_node svg, double x1, double y1, double x2, double y2, Attributes style) {
  auto line = markup::add(
      svg, "line",
      {{"x1", fixed(x1, 1)}, {"y1", fixed(y1, 1)}, {"x2", fixed(x2, 1)}, {"y2", fixed(y2, 1)}});
  for (const auto& attribute : style) markup::set(line, attribute);
}

pugi::xml_node begin_plot(pugi::xml_document& document, double width, double height,
                          const std::string& title) {
  auto svg = markup::begin_picture(document, width, height, title, kStyle);
  add_text_at(svg, 14, 22, title);
  return svg;
}

void add_dot(pugi::xml_node svg, double x, double y, const char* colour, bool filled) {
  auto dot = markup::add(svg, "circle", {{"cx", fixed(x, 1)}, {"cy", fixed(y, 1)}, {"r", "4"}});
  markup::set(dot, {"fill", filled ? colour : "none"});
  if (!filled) markup::set(dot, {"stroke", colour});
}

}  // namespace checker::bench

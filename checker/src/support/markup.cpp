#include "support/markup.hpp"

#include <algorithm>
#include <sstream>

#include "support/text.hpp"

namespace checker::markup {

namespace {

// HTML and XML cannot hold control characters, not even escaped; pugixml escapes all the rest.
std::string writable(std::string_view text) {
  std::string plain(text);
  std::ranges::replace_if(
      plain, [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n'; }, ' ');
  return plain;
}

}  // namespace

pugi::xml_node add(pugi::xml_node parent, const char* name,
                   std::initializer_list<Attribute> attributes, std::string_view text) {
  auto element = parent.append_child(name);
  for (const auto& attribute : attributes) set(element, attribute);
  if (!text.empty()) add_text(element, text);
  return element;
}

pugi::xml_node add(pugi::xml_node parent, const char* name, std::string_view text) {
  return add(parent, name, {}, text);
}

void add_text(pugi::xml_node element, std::string_view text) {
  element.append_child(pugi::node_pcdata).set_value(writable(text).c_str());
}

void set(pugi::xml_node element, const Attribute& attribute) {
  element.append_attribute(attribute.name).set_value(writable(attribute.value).c_str());
}

pugi::xml_node add_table(pugi::xml_node parent, const std::string& css_class,
                         const std::vector<std::string>& headings) {
  auto table = add(parent, "table", {{"class", css_class}});
  auto line = add(add(table, "thead"), "tr");
  for (const auto& heading : headings) add(line, "th", heading);
  return add(table, "tbody");
}

pugi::xml_node add_row(pugi::xml_node body, const std::string& heading,
                       const std::vector<std::string>& cells) {
  auto line = add(body, "tr");
  add(line, "th", heading);
  for (const auto& cell : cells) add(line, "td", cell);
  return line;
}

pugi::xml_node begin_picture(pugi::xml_document& document, double width, double height,
                             const std::string& label, const std::string& style) {
  auto svg = add(document, "svg",
                 {{"xmlns", "http://www.w3.org/2000/svg"},
                  {"viewBox", "0 0 " + fixed(width, 0) + " " + fixed(height, 0)},
                  {"role", "img"},
                  {"aria-label", label}});
  add(svg, "style", style);
  return svg;
}

std::string to_svg(const pugi::xml_document& picture) {
  std::ostringstream text;
  picture.save(text, "  ", pugi::format_indent | pugi::format_no_declaration);
  return text.str();
}

std::string to_html(pugi::xml_node parent) {
  std::ostringstream text;
  // Blanks between elements would show, and a browser takes <i/> for a tag that nobody closed.
  for (const auto child : parent) {
    child.print(text, "", pugi::format_raw | pugi::format_no_empty_element_tags);
  }
  return text.str();
}

std::string to_page(const std::string& title, const char* style, const pugi::xml_document& body,
                    const char* script) {
  pugi::xml_document head;
  add(head, "title", title);
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
         "<meta name=\"viewport\" content=\"width=device-width\">"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
         "'unsafe-inline'; script-src 'unsafe-inline'\">" +
         to_html(head) + "<style>" + style + "</style></head><body>\n" + to_html(body) +
         "\n<script>" + script + "</script></body></html>\n";
}

}  // namespace checker::markup

#pragma once
/// SVG pictures and HTML pages, built as trees: text in them stays text, whatever it holds.
#include <initializer_list>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace checker::markup {

struct Attribute {
  const char* name;
  std::string value;
};

/// Adds an element behind what the parent already holds.
pugi::xml_node add(pugi::xml_node parent, const char* name,
                   std::initializer_list<Attribute> attributes = {}, std::string_view text = {});
pugi::xml_node add(pugi::xml_node parent, const char* name, std::string_view text);

/// Adds text behind what the element already holds.
void add_text(pugi::xml_node element, std::string_view text);

void set(pugi::xml_node element, const Attribute& attribute);

/// Adds a table with one line of headings and returns its body.
pugi::xml_node add_table(pugi::xml_node parent, const std::string& css_class,
                         const std::vector<std::string>& headings);

/// Adds a line of a table: a heading, then cells. Returns the line.
pugi::xml_node add_row(pugi::xml_node body, const std::string& heading,
                       const std::vector<std::string>& cells = {});

/// Makes the document a picture of this size, in user units; `label` is for those who cannot see
/// it. Returns the <svg>, which holds only the style so far.
pugi::xml_node begin_picture(pugi::xml_document& document, double width, double height,
                             const std::string& label, const std::string& style);

/// The text of a picture's file.
std::string to_svg(const pugi::xml_document& picture);

/// The text of elements within a page.
std::string to_html(pugi::xml_node parent);

/// The text of a page that a browser shows without any network; `body` holds its elements. Style
/// and script are our own, and are written as they are.
std::string to_page(const std::string& title, const char* style, const pugi::xml_document& body,
                    const char* script);

}  // namespace checker::markup

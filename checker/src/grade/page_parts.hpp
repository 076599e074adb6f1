#pragma once
/// What the class's page is made of. Names and messages in it come from students: printable() makes
/// them safe to show.
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "judge/verdict.hpp"

namespace checker::grade::page {

/// The page with these elements, its style and its script.
std::string whole(const std::string& title, const pugi::xml_document& body);

/// The text with shown_name()'s marks instead of what would not show, line by line.
std::string printable(const std::string& text);
/// "every rank prints" for "every_rank_prints".
std::string words(const std::string& id);
void add_list(pugi::xml_node parent, const std::vector<std::string>& lines);
/// A share as a bar with its numbers.
void add_bar(pugi::xml_node parent, size_t part, size_t whole);
/// The ranks of a run, one above the other, and what each did when.
void add_picture(pugi::xml_node parent, const Timeline& timeline);

}  // namespace checker::grade::page

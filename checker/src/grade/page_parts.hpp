#pragma once
/// What a page that needs no network is made of.
#include <string>
#include <vector>

#include "judge/verdict.hpp"

namespace checker::grade::page {

/// Begins the page, with all of its style; foot() ends it, with all of its script.
std::string head(const std::string& title);
std::string foot();

/// Text that stays text, in elements and in quoted attributes.
std::string escaped(const std::string& text);
/// "every rank prints" for "every_rank_prints".
std::string words(const std::string& id);
std::string list(const std::vector<std::string>& lines);
/// A share as a bar with its numbers.
std::string bar(size_t part, size_t whole);
/// The ranks of a run, one above the other, and what each did when.
std::string picture(const Timeline& timeline);

}  // namespace checker::grade::page

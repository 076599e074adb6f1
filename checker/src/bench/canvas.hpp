#pragma once
/// Canvas draws plots: axes, bars, lines and words.
#include <initializer_list>
#include <string>

#include "support/markup.hpp"

namespace checker::bench {

// In user units.
constexpr double kLeft = 56, kTop = 40, kWidth = 480, kHeight = 320, kLegend = 230;

// Told apart by people who do not see all colours alike (Okabe and Ito, 2008).
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9",
                                    "#e69f00", "#a08a00", "#7f7f7f", "#994f00", "#40b0a6"};

using Attributes = std::initializer_list<markup::Attribute>;

pugi::xml_node begin_plot(pugi::xml_document& document, double width, double height,
                          const std::string& title);

void add_text_at(pugi::xml_node svg, double x, double y, const std::string& text,
                 const char* anchor = "start");

void add_line(pugi::xml_node svg, double x1, double y1, double x2, double y2, Attributes style);

/// Filled, or a ring.
void add_dot(pugi::xml_node svg, double x, double y, const char* colour, bool filled);

}  // namespace checker::bench

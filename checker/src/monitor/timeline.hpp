#pragma once
/// What each rank did when, one above the other: overlap, waiting and stragglers to be seen.
#include <pugixml.hpp>

#include "monitor/figures.hpp"

namespace checker::monitor {

/// Adds two figures: steps in the middle of the run, and those around the slowest one. Of many
/// ranks fewer steps are shown, so that the page stays small. Adds a paragraph where no step was
/// recorded in detail.
void draw_timelines(pugi::xml_node page, const Run& run);

/// The optimizer steps [first, last] that a timeline shows.
struct Window {
  uint64_t first = 0, last = 0;
};

/// A window around the step `middle`, with at most `most` spans and collectives in it.
Window window_around(const Run& run, uint64_t middle, size_t most);

}  // namespace checker::monitor

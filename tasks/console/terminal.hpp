#pragma once
/// Tells what a file descriptor can show: colours, width.

namespace console {

bool is_terminal(int descriptor);

/// A terminal that lines can be drawn over on: any but TERM=dumb.
bool can_draw(int descriptor);

/// can_draw(), unless NO_COLOR is set (https://no-color.org).
bool has_colour(int descriptor);

/// Columns of a terminal; `otherwise` where it does not say.
int width(int descriptor, int otherwise);

}  // namespace console

#pragma once
/// What a file descriptor can show.

namespace tasks {

bool is_terminal(int descriptor);

/// True for a terminal, unless NO_COLOR is set (https://no-color.org).
bool use_colors(int descriptor);

/// Columns of a terminal; 80 where it does not say.
int terminal_width(int descriptor);

}  // namespace tasks

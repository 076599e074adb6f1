#pragma once
/// Pages as a real browser shows them.
#include <string>

namespace checker::testing {

bool has_browser();

/// What headless Chromium makes of a page in a frame of this width: the text that `script` leaves
/// as the outer document's, and all that the console said. The script, JavaScript, runs once the
/// page is there, and finds it as `page`, its window as `view`.
std::string seen_by_browser(const std::string& page, int width, const std::string& script);

}  // namespace checker::testing

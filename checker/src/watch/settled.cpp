#include "watch/settled.hpp"

#include <algorithm>
#include <utility>

namespace checker {

bool SettledFiles::look(const Fingerprints& now) {
  const auto before = std::exchange(last_, now);
  const bool missing =
      std::ranges::any_of(now, [](const auto& file) { return file.second.empty(); });
  if (missing || now == settled_ || now != before) return false;
  settled_ = now;
  return true;
}

}  // namespace checker

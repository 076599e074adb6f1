#pragma once
#include <cstdio>
#include <string>

namespace checker::bench {

/// "1.905", "2.15".
inline std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

}  // namespace checker::bench

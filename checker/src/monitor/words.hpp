#pragma once
/// Writes figures as people read them: times, bytes, shares.
#include <cstdint>
#include <string>
#include <string_view>

namespace checker::monitor {

/// "12.3 µs", "4.56 ms", "12.3 s", "2 min 05 s", "1 h 12 min".
std::string shown_seconds(double seconds);
/// "512 B", "1.50 MiB".
std::string shown_bytes(double bytes);
/// "950", "18.3k", "1.20M": a rate or a large count.
std::string shown_count(double count);
/// "34 %", "0.4 %".
std::string shown_share(double share);
/// As short as six significant digits allow: for files and SVG.
std::string compact(double value);

/// "all_reduce", as PyTorch calls what c10d::OpType numbers.
std::string_view collective_name(uint8_t op_type);

}  // namespace checker::monitor

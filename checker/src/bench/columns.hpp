#pragma once
/// Rows of words and numbers as lines of a table.
#include <string>
#include <vector>

namespace checker::bench {

using Row = std::vector<std::string>;

/// The first row holds the titles. Columns whose number is below `words` begin alike, those of
/// numbers end alike; `markdown` as GitHub shows tables.
std::vector<std::string> lines_of(const std::vector<Row>& rows, size_t words, bool markdown);

}  // namespace checker::bench

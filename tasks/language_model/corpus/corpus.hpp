#pragma once
/// Text of the made-up language, as long as wanted.
#include <cstdint>
#include <vector>

#include "grammar.hpp"

namespace tasks::corpus {

/// Whole sentences drawn with this seed, until they have `words` words or more; ids of the
/// grammar's lexicon. The same bits on every machine.
std::vector<int32_t> generate(const Grammar& grammar, uint64_t seed, int64_t words);

}  // namespace tasks::corpus

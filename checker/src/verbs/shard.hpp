#pragma once
/// Parts of a long list, for several machines or one after the other.
#include <string>
#include <vector>

#include "judge/catalogue_run.hpp"

namespace checker {

/// Keeps a part of the samples. shard: "2/5": every fifth one, from the second on. Throws
/// UsageError for anything else.
void keep_shard(std::vector<Sample>& samples, const std::string& shard);

}  // namespace checker

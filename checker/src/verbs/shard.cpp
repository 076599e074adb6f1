#include "verbs/shard.hpp"

#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {

void keep_shard(std::vector<Sample>& samples, const std::string& shard) {
  const auto slash = shard.find('/');
  const int part = whole_number(shard, 0);
  const int parts = slash == shard.npos ? 0 : whole_number(shard.substr(slash + 1), 0);
  if (part < 1 || part > parts) {
    throw UsageError("--shard " + shard + ": use I/N with I from 1 to N, for example 1/4.");
  }
  std::vector<Sample> mine;
  for (auto i = static_cast<size_t>(part - 1); i < samples.size();
       i += static_cast<size_t>(parts)) {
    mine.push_back(std::move(samples[i]));
  }
  samples = std::move(mine);
}

}  // namespace checker

#include "judge/departure.hpp"

namespace checker {

std::string last_words(const RankSeen& rank) {
  for (size_t i = rank.errors.size(); i-- > 0;) {
    const auto at = rank.errors[i].find("error: ");
    if (at != std::string::npos) return rank.errors[i].substr(at + 7, 300);
  }
  return rank.errors.empty() ? "" : rank.errors.back().substr(0, 300);
}

bool is_victim(const RankSeen& rank) {
  const auto words = last_words(rank);
  return words.find("onnection") != std::string::npos || words.find("peer") != std::string::npos ||
         words.find("imed out") != std::string::npos;
}

bool has_left(const RankSeen& rank) {
  if (!rank.left_regularly) return false;
  return rank.result.exit.success() || (rank.result.ended_by_us && !is_victim(rank));
}

}  // namespace checker

#include "judge/departure.hpp"

#include <algorithm>
#include <string_view>

#include "support/text.hpp"

namespace checker {

namespace {

bool is_work(const Event& event) {
  switch (event.kind) {
    case Kind::collective:
    case Kind::sampler:
    case Kind::set_epoch:
    case Kind::printed:
    case Kind::saved:
    case Kind::fetch:
    case Kind::forward:
    case Kind::parameters:
    case Kind::reported:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string last_words(const RankSeen& rank) {
  constexpr size_t kMost = 300;
  // The trainers' own, then those of an exception that nobody caught.
  for (const std::string_view begin : {"error: ", "what():  "}) {
    for (size_t i = rank.errors.size(); i-- > 0;) {
      const auto at = rank.errors[i].find(begin);
      if (at == std::string::npos) continue;
      return whole_sentences(std::string_view(rank.errors[i]).substr(at + begin.size()), kMost);
    }
  }
  return rank.errors.empty() ? "" : whole_sentences(rank.errors.back(), kMost);
}

bool is_victim(const RankSeen& rank) {
  const auto words = last_words(rank);
  return words.find("onnection") != std::string::npos || words.find("peer") != std::string::npos ||
         words.find("imed out") != std::string::npos;
}

bool called_setup_twice(const RankSeen& rank) {
  return last_words(rank).starts_with("setup() was called twice");
}

bool worked_after_leaving(const RankSeen& rank) {
  if (!rank.shutdown_event) return false;
  // distributed_utils refuses what needs a group before anything of it is recorded.
  if (last_words(rank).find("destroy_process_group() has shut it down") != std::string::npos)
    return true;
  const auto& events = rank.log.events;
  const auto after = std::min(*rank.shutdown_event + 1, events.size());
  return std::any_of(events.begin() + static_cast<std::ptrdiff_t>(after), events.end(), is_work);
}

bool has_left(const RankSeen& rank) {
  if (!rank.left_regularly) return false;
  return rank.result.exit.success() || (rank.result.ended_by_us && !is_victim(rank));
}

}  // namespace checker

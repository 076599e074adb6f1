#include <algorithm>

#include "bench/bench.hpp"

namespace checker::bench {

Model model(const Timing& alone, const Timing& together) {
  const double all_reduce = together.all_reduce_ms.value_or(0);
  return {.hidden_ms = std::max(alone.step_ms, all_reduce),
          .exposed_ms = alone.step_ms + all_reduce};
}

const Result* alone(const std::vector<Result>& results, const Result& of) {
  const auto found = std::find_if(results.begin(), results.end(), [&](const Result& other) {
    return other.what.label == of.what.label && other.what.ours == of.what.ours &&
           other.what.ranks == 1 && other.timing;
  });
  return found == results.end() ? nullptr : &*found;
}

}  // namespace checker::bench

#pragma once
/// The losses that a run must report, by the samples that its ranks used and the parameters that
/// they had.
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "oracle.hpp"

namespace replay {

class ExpectedLosses {
 public:
  /// oracles: of each rank. after: by rank and step, the parameters after it. All of these must
  /// outlive it.
  ExpectedLosses(const std::vector<checker::RankSeen>& ranks, std::vector<Oracle>& oracles,
                 const std::vector<std::vector<Flat>>& after)
      : ranks_(ranks), oracles_(oracles), after_(after) {}

  /// By epoch, over all ranks.
  nlohmann::json training() const;
  /// Adds validation, test, test_of_best (see replay.hpp).
  void evaluations(nlohmann::json& result);
  /// The parameters of rank r that hold after training pass `epoch`, from 0; null: not known.
  const Flat* state_after(size_t r, size_t epoch) const;
  /// How many steps rank r has done by the end of that pass.
  size_t steps_until(size_t r, size_t epoch) const;

 private:
  std::optional<double> mean_after(checker::Split split, size_t epochs, size_t state);
  double mean_with_own_buffers(checker::Split split, size_t epochs, const Flat& state);

  const std::vector<checker::RankSeen>& ranks_;
  std::vector<Oracle>& oracles_;
  const std::vector<std::vector<Flat>>& after_;
};

}  // namespace replay

#pragma once
/// A run that starts from the model that another run has saved.
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "expected_losses.hpp"
#include "oracle.hpp"
#include "pieces.hpp"

namespace replay {

/// What is known of the run before, of the whole model.
struct RunBefore {
  struct Epoch {
    Flat values;       ///< the parameters after it
    size_t steps = 0;  ///< that were done until then
  };

  Flat initial;
  std::vector<Epoch> epochs;
  std::vector<checker::TensorSeen> parameters;  ///< their names and sizes
  std::vector<checker::StepSeen> steps;

  /// The parameters after each epoch.
  std::vector<Flat> models() const;
};

/// ranks: of the whole model; pieces: of these; losses: theirs.
RunBefore run_before(const std::vector<checker::RankSeen>& ranks, const Pieces& pieces,
                     const ExpectedLosses& losses);

/// ranks: those of the run that goes on.
///
///   epoch      of the run before (from 1), after which the parameters were what most ranks start
///              with; 0: what make_model gave
///   unknown    by rank: elements that they start with and that the model did not have then
///   elements   of the model; once: on one rank or, whole, on all; nowhere: on none
///   steps      that all ranks took
///   kept       parameters after these steps, held against what the optimizer makes of them if its
///              state goes on where it was
///   fresh      the same if its state starts from nothing. Both left out where no two steps are
///   known
nlohmann::json continued(const tasks::Task& task, const RunBefore& before,
                         const std::vector<checker::RankSeen>& ranks);

}  // namespace replay

#pragma once
/// Computes again, from the data and from the recorded sample ids, what the gradients, the
/// parameters and the losses of a run must be.
#include <nlohmann/json_fwd.hpp>

#include "oracle.hpp"

namespace replay {

/// What is true of one run. All deviations are relative: the largest difference of any element over
/// the largest element of what it is held against.
///
///   ranks[r].steps[t]    gradients of optimizer step t on rank r held against
///                          mean         the mean of all ranks' gradients: what it should be
///                          local        rank r's own
///                          sum          the sum over the ranks
///                          twice        the mean divided by the world size once more
///                          accumulated  the mean and the gradient of the step before
///                          nothing      0 if all are zero, else 1
///                        apart           parameters before the step, held against rank 0's
///                        rates           learning rates, held against the task's schedule
///                        update          parameters after it, held against an optimizer step with
///                                        the learning rates that it had
///                        loss            the batch's loss sum
///                        parameters      names of those whose gradient is not the mean
///   ranks[r].evaluations  the same for the loss sums of evaluation batches: largest deviation
///   ranks[r].files        what a file holds: "epoch 2" (from 1), "initial", "other",
///                         "unreadable"; names: those of the model; format: as format_of() says
///   cover                 where some rank trains pieces of the model: as Pieces::cover() says.
///                         Gradients and parameters are then held against what the rank's pieces
///                         must be, apart against the lowest rank's that holds the same.
///   memory                as serial_memory() says; left out unless pieces are looked for
///   saved                 as what_is_saved() says, where there is a folder of the best model
///   continued             as continued() says of `further`, the ranks of a run that starts from
///                         that model; left out where there is none
///   training[e]           the mean training loss of epoch e over all ranks
///   validation[e], test, test_of_best
///                         the mean loss over the whole split with rank 0's parameters; where the
///                         buffers have changed, over what the ranks evaluated, with each's own
nlohmann::json replay(const tasks::Task& task, const tasks::Options& options,
                      std::vector<checker::RankSeen> ranks,
                      const std::optional<std::vector<checker::RankSeen>>& further,
                      checker::Holding holding);

/// What one of the files that a rank left holds.
nlohmann::json look_into(const tasks::Task& task, const std::filesystem::path& file,
                         const std::vector<std::pair<std::string, Flat>>& states,
                         const std::vector<checker::TensorSeen>& parameters);

}  // namespace replay

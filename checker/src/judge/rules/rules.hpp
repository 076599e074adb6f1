#pragma once
/// The rules. Each looks at one run and adds the symptoms that it sees. None looks at the program's
/// text, and each holds for edits that nobody has thought of.
#include "judge/run_context.hpp"

namespace checker::rules {

/// Every rank is a member of a group of the world's size, under its own rank (TODO 1 to 3).
void membership(const RunContext& context, Symptoms& symptoms);
/// Training is on the training split, validation on its own, the test on its own.
void purposes(const RunContext& context, Symptoms& symptoms);
/// Each rank trains on a share of its own, in batches of the asked size, each followed by a step
/// (TODO 4, 5).
void training_shares(const RunContext& context, Symptoms& symptoms);
/// Each rank evaluates a share of its own, and every sample counts once (TODO 4, 6, 7).
void evaluation_shares(const RunContext& context, Symptoms& symptoms);
/// The order changes from epoch to epoch, on all ranks alike (TODO 9).
void epochs(const RunContext& context, Symptoms& symptoms);
/// Gradients are those of the batch: from TODO 8 on the mean over the ranks; and parameters follow
/// from them.
void gradients(const RunContext& context, Symptoms& symptoms);
/// Reported losses are those of all ranks (TODO 10).
void losses(const RunContext& context, Symptoms& symptoms);
/// So are those that ranks print (TODO 10).
void printed_losses(const RunContext& context, Symptoms& symptoms);
/// Reported metrics are those of all ranks.
void metrics(const RunContext& context, Symptoms& symptoms);
/// The rank that prints losses and reports none, so that nobody knows them exactly; nothing where
/// they can be judged.
std::optional<size_t> silent_about_losses(const RunContext& context);
/// The largest relative deviation of a reported loss from the one of all ranks; 0 before TODO 10.
double loss_deviation(const RunContext& context);
/// Rank 0 alone prints (TODO 11).
void speaking(const RunContext& context, Symptoms& symptoms);
/// No rank moves or removes what rank 0 wrote, and none dies of a file that others change too.
void files(const RunContext& context, Symptoms& symptoms);
/// Rank 0 alone writes the best and the final model (TODO 12).
void saving(const RunContext& context, Symptoms& symptoms);
/// Every rank shuts its groups down, after the last collective (TODO 13).
void leaving(const RunContext& context, Symptoms& symptoms);
/// The ranks issued the same collectives in the same order.
void collectives(const RunContext& context, Symptoms& symptoms);
/// What a run that hung or died died of.
void trouble(const RunContext& context, Symptoms& symptoms);
/// Where ranks hung or how they died, told beside what was found already.
void aftermath(const RunContext& context, Symptoms& symptoms);
/// Every rank prints what the step says that it prints: of plain programs.
void output(const RunContext& context, Symptoms& symptoms);
/// What plain programs show is what the step says that it must be.
void shown_results(const RunContext& context, Symptoms& symptoms);
/// They do not use the collectives that the step forbids.
void without(const RunContext& context, Symptoms& symptoms);
/// The program did all that a trainer does: every epoch, evaluation, the test.
void whole(const RunContext& context, Symptoms& symptoms);

}  // namespace checker::rules

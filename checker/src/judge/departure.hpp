#pragma once
/// Finds out how a rank left its run: by itself, or because another was gone.
#include <string>

#include "evidence/run.hpp"

namespace checker {

/// The last line of what a rank said of its own failure; empty if it said nothing.
std::string last_words(const RankSeen& rank);

/// Whether a rank failed only because another was gone, as far as its words tell: Gloo and NCCL
/// speak of peers, connections and time-outs then.
bool is_victim(const RankSeen& rank);

/// Whether distributed_utils refused a second setup().
bool called_setup_twice(const RankSeen& rank);

/// Whether a rank left its group and then went on working, or tried to. Not so where it left
/// because it was failing already: an object that leaves the group does that when an exception
/// passes it.
bool worked_after_leaving(const RankSeen& rank);

/// Whether a rank went to its end by itself. One that was about to when the run was ended counts as
/// well, but not one whose collective had failed because others were gone.
bool has_left(const RankSeen& rank);

}  // namespace checker

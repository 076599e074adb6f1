#pragma once
#include "verbs/verbs.hpp"

namespace checker {

/// ./workbook bench scaling: the batch-size study. `arguments` follow the word scaling.
int run_batch_size_study(const Project& project, const Arguments& arguments);

}  // namespace checker

#pragma once
#include "verbs/verbs.hpp"

namespace checker {

/// ./workbook bench scaling: the batch-size study. `arguments` follow the word scaling.
int run_batch_size_study(const Project& project, const Arguments& arguments);

/// ./workbook bench --all-gpus: the benchmark suite of all chapters.
int run_bench_suite(const Project& project, const Arguments& arguments);

/// Makes the build folder have the targets of benchmarks.
void configure_benchmarks(const Project& project);

/// A Python that has torch; empty: there is none.
std::string python_with_torch(const Project& project);

}  // namespace checker

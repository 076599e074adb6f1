#pragma once
/// parallel_for spreads the work of one process over several cores, for example to read and decode
/// the samples of a batch.
#include <cstdint>
#include <functional>

namespace tasks {

/// Calls work(i) once for each i in [0, count), on as many threads as torch uses
/// (at::get_num_threads(), --threads), and returns when all is done. In these threads torch itself
/// uses one. Which thread takes which i is not determined, so work(i) must not depend on it. If
/// calls throw, the rest is left out and one of the exceptions is thrown here.
///
/// at::parallel_for does the same in programs that are compiled with OpenMP, and calls everything
/// in one thread in others, such as this project's.
void parallel_for(int64_t count, const std::function<void(int64_t)>& work);

}  // namespace tasks

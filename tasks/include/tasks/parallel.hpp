#pragma once
/// parallel_for spreads the work of one process over several cores, for example to read and decode
/// the samples of a batch.
#include <cstdint>
#include <functional>

namespace tasks {

/// How many threads parallel_for uses in this process from now on; 0: as many as torch
/// (at::get_num_threads()), which is what it begins with. Ranks that compute on GPUs leave torch
/// one thread each, as torchrun does, but their batches want all cores.
void set_parallel_threads(int threads);
int parallel_threads();

/// The cores that this process may run on, divided by the ranks of this machine that share them
/// (LOCAL_WORLD_SIZE). Slurm binds each task to cores of its own and sets no such number. At
/// least 1.
int cores_of_rank();

/// Calls work(i) once for each i in [0, count), on parallel_threads() threads, and returns when all
/// is done. In these threads torch itself
/// uses one. Which thread takes which i is not determined, so work(i) must not depend on it. If
/// calls throw, the rest is left out and one of the exceptions is thrown here.
///
/// at::parallel_for does the same in programs that are compiled with OpenMP, and calls everything
/// in one thread in others, such as this project's.
void parallel_for(int64_t count, const std::function<void(int64_t)>& work);

}  // namespace tasks

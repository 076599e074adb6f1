#pragma once
/// Tests recovery: kills many runs of the last trainer, and damages many checkpoints.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace checker::endure {

struct Options {
  std::filesystem::path program;  ///< a trainer that makes checkpoints
  size_t count = 0;               ///< of trials
  uint64_t seed = 0;              ///< of what happens when
  std::string device = "cpu";     ///< "cuda": over NCCL
  size_t ranks = 3;
  std::function<void(size_t done)> on_progress = {};
};

struct Outcome {
  size_t right = 0;
  std::vector<std::string> wrong;  ///< what else happened, a line or more each
  std::string remark;              ///< "23 were killed before their first checkpoint"

  size_t trials() const { return right + wrong.size(); }
};

/// Each trial kills one rank, or all of them, at a moment of its own; the moments are
/// spread evenly over a run. The run is then resumed, and must end with the bits of one that nobody
/// disturbed. Throws Error if even that one fails.
Outcome kill_ranks(const Options& options);

/// Each trial damages one file of the newer of two checkpoints: flipped bits, zeros, truncation,
/// bytes behind the end, a file that is missing, the older one's file or manifest. Resuming must
/// fail, naming the file and the older checkpoint.
Outcome damage_checkpoints(const Options& options);

/// The feature of steps whose trainers make checkpoints and resume from them.
constexpr std::string_view kResumes = "CHECKPOINT";

struct ChaosOptions {
  Options trials;
  std::filesystem::path course;  ///< the folder with the job scripts' source
  std::filesystem::path venv;    ///< with torchrun
  size_t disturbances = 3;       ///< of one job, at most
  size_t epochs = 30;            ///< of a job; a disturbance comes within its first ten seconds
};

/// Each trial is the job of the last step that can resume, on a lab of two nodes with two ranks
/// each, to which some things happen: a rank or a torchrun is killed, its time is up, it is queued
/// again, a node loses its power. A job that fails is queued again. It must end with the bits of
/// one that nobody disturbed. Throws Error where there can be no lab.
Outcome chaos_on_a_lab(const ChaosOptions& options);

}  // namespace checker::endure

#pragma once
/// A run of the trainer with checkpoints that lasts seconds and saves often, to be disturbed.
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "endure/endure.hpp"

namespace checker::endure {

/// How a run ended.
struct RunEnd {
  bool success = false;
  double seconds = 0;  ///< since the ranks' first words
  std::string said;    ///< by all ranks
};

/// Writes the configuration of such runs into a folder and returns the file.
std::filesystem::path small_config(const std::filesystem::path& folder);

class SmallRun {
 public:
  /// Of the options' program, on their device. output: where it writes; the model ends up there.
  SmallRun(const Options& options, std::filesystem::path output);

  /// Asked every 50 ms once ranks train, with the seconds since their first words and their
  /// processes.
  using Disturb = std::function<void(double seconds, std::span<const pid_t> ranks)>;

  /// Trains with so many ranks to the end, from the newest checkpoint if there is one.
  RunEnd train(size_t world_size, const Disturb& disturb = nullptr) const;

  /// The same, for what others are held against. Throws Error if it fails.
  RunEnd train_undisturbed(size_t world_size) const;

  std::filesystem::path checkpoints() const { return output_ / "checkpoints"; }
  /// The bytes of the final model; empty if there is none.
  std::string model() const;

 private:
  std::filesystem::path program_;
  std::string device_;
  std::filesystem::path output_;
};

}  // namespace checker::endure

#pragma once
/// The directory of checkpoints: what lies in it, and how one comes and goes as a whole.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace distributed_utils::detail {

/// "step-000001200".
std::string checkpoint_name(int64_t step);

/// The steps whose checkpoints are in the directory, rising; none if it does not exist. Throws
/// Error if it cannot be read.
std::vector<int64_t> checkpoint_steps(const std::filesystem::path& directory);

/// The hidden folder in which a checkpoint is made.
std::filesystem::path temporary_folder(const std::filesystem::path& directory, int64_t step);

/// Removes what killed runs left and makes the hidden folder, empty; the directory too if `create`.
/// Throws Error, also if the directory holds a checkpoint of a later step.
void begin_checkpoint(const std::filesystem::path& directory, int64_t step, bool create);

/// Gives the hidden folder, whose files are on disk already, its name. Throws Error.
void commit_checkpoint(const std::filesystem::path& directory, int64_t step);

/// Removes what cannot be committed; what cannot be removed stays.
void discard_checkpoint(const std::filesystem::path& directory, int64_t step) noexcept;

/// Removes all but the newest `keep` checkpoints; what cannot be removed stays.
void prune_checkpoints(const std::filesystem::path& directory, int keep) noexcept;

}  // namespace distributed_utils::detail

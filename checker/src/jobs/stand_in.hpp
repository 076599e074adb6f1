#pragma once
/// What takes the place of torchrun and of the trainer in the job that gets a signal: as light as
/// can be, and as easily killed by signals as they are.
#include <filesystem>
#include <span>
#include <string>

namespace checker {

/// Files of a rank, beside its others, by their endings.
constexpr const char* kReady = ".ready";   ///< it waits for the signal
constexpr const char* kTold = ".told";     ///< it got a signal, and saves
constexpr const char* kBySignal = "USR1";  ///< what it holds if that was SIGUSR1, and no SIGTERM
constexpr const char* kLost = ".lost";     ///< what the signal ended above it, while it saved
/// The rank may end its saving once this lies beside its files.
constexpr const char* kMayStop = "may-stop";

/// Starts as many ranks as torchrun would on this node, and ends as they do. words: torchrun's.
int stand_in_for_torchrun(std::span<const std::string> words);

/// Waits for the signal, then "saves" until it may stop. A job that was queued again has its rank
/// fail. file: what the rank's files begin with.
int stand_in_for_rank(const std::filesystem::path& file);

}  // namespace checker

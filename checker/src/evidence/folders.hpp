#pragma once
/// Where the ranks of one judged world run and record:
///
///   world-3/log-0 log-1 log-2    what each recorded
///           files/               where all of them ran, if they share a folder
///           rank-0/ rank-1/ …    else where each of them ran
///           cache-0/ cache-1/ …  what the ranks of each node prepared
///           continued/world-2/   the same of the ranks that start from the model left here
#include <filesystem>

namespace checker {

std::filesystem::path log_of(const std::filesystem::path& world, size_t rank);
std::filesystem::path shared_folder_of(const std::filesystem::path& world);
/// The one that they share if it is there, else the rank's own.
std::filesystem::path folder_of(const std::filesystem::path& world, size_t rank);

/// What --output says, in the folder that ranks run in.
constexpr const char* kOutputFolder = "output";
/// The model from which another run starts, in the folder that ranks ran in: a folder too.
std::filesystem::path best_model_in(const std::filesystem::path& ran_in);
/// Holds the folder of the world that continues this one.
std::filesystem::path continued_of(const std::filesystem::path& world);

std::filesystem::path cache_of(const std::filesystem::path& world, size_t node);

}  // namespace checker

#pragma once
/// Prepared data: made once on a machine, and found again by every later run.
#include <filesystem>
#include <functional>
#include <string>

namespace tasks {

/// Where such data lie: WORLDSIZE_CACHE, else worldsize in XDG_CACHE_HOME, else in ~/.cache
/// (https://specifications.freedesktop.org/basedir-spec), else in the folder for temporary files.
std::filesystem::path cache_folder();

/// The folder <cache_folder()>/<name>. Where it is not there, fill() writes into an empty folder
/// beside it, which is then renamed: so it is whole or not there, whenever a process is killed.
///
/// Processes that want it at the same time fill one each, and the first to end wins. The others
/// have worked for nothing, but nothing breaks. Who wants to spare that work lets one rank of each
/// node go first: see distributed_utils/rank0_first.hpp.
///
/// Throws Error if the cache cannot be written to, and what fill() throws.
std::filesystem::path prepared(const std::string& name,
                               const std::function<void(const std::filesystem::path&)>& fill);

}  // namespace tasks

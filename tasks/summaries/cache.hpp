#pragma once
/// Data that are made once on a machine and found again by every later run.
#include <filesystem>
#include <functional>
#include <string>

namespace tasks::summaries {

/// Where such data lie: WORLDSIZE_DATA_CACHE, else worldsize in XDG_CACHE_HOME, else in ~/.cache
/// (https://specifications.freedesktop.org/basedir-spec), else in the folder for temporary files.
std::filesystem::path data_cache();

/// The folder <cache>/<name>, which fill() has written into. It is either whole or not there: it is
/// filled under another name and then renamed. Of the processes that want it at a time one fills
/// it, and the others wait; where the file system has no locks, each fills one and the first stays.
/// Throws Error if the cache cannot be written to, and what fill() throws.
std::filesystem::path made_once(const std::filesystem::path& cache, const std::string& name,
                                const std::function<void(const std::filesystem::path&)>& fill);

}  // namespace tasks::summaries

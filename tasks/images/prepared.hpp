#pragma once
/// Folders that a program makes once, and finds the next time.
#include <filesystem>
#include <functional>
#include <string>

namespace tasks::images {

/// Where such folders lie: $WORLDSIZE_CACHE, else $XDG_CACHE_HOME/worldsize, else
/// ~/.cache/worldsize, else a folder for temporary files.
std::filesystem::path cache_folder();

/// The folder cache/name. Where it is not there, `write` fills a folder beside it, which then takes
/// its name: it is complete or not there, whenever the program is killed. One process of a node
/// writes while the others wait for it; nodes that share the folder and do not know of each other's
/// locks write one each, and the first counts. Throws Error where nothing can be written.
std::filesystem::path prepared(const std::filesystem::path& cache, const std::string& name,
                               const std::function<void(const std::filesystem::path&)>& write);

}  // namespace tasks::images

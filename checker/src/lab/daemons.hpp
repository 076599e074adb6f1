#pragma once
/// What the first processes of a lab and of its nodes share.
#include <filesystem>
#include <string>
#include <vector>

namespace checker {

/// The environment of Slurm's daemons: nothing of whoever started the lab but the PATH.
void use_daemon_environment(const std::filesystem::path& folder, const std::string& search_path);

/// Starts a daemon that stays in the foreground, with its output in <folder>/log/<name>.
pid_t start_daemon(const std::filesystem::path& folder, const std::string& name,
                   const std::vector<std::string>& command);

/// The last lines of a daemon's log, indented, each on a line of its own; nothing if there is none.
/// `folder` is how the caller sees the lab's files.
std::string last_words(const std::filesystem::path& folder, const std::string& name);

/// Runs a shell script until its first error; throws Error with what it said if it fails.
void run_script(const std::string& what, const std::string& script);

}  // namespace checker

#pragma once
#include <sys/types.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace checker {

/// The processes whose parent this is, as /proc shows them now.
std::set<pid_t> children_of(pid_t parent);

/// The processes, their children, theirs, and so on.
std::set<pid_t> families_of(const std::vector<pid_t>& processes);

/// A stat file of /proc, of a process or of one of its threads, from its third field on: "S 1 ...",
/// the state and the parent. Empty once it is gone.
std::string stat_fields(const std::filesystem::path& stat);

/// What /proc calls the process (comm, at most 15 letters); empty once it is gone.
std::string name_of(pid_t process);

/// Its program and arguments, a blank between them; empty once it is gone.
std::string command_line_of(pid_t process);

/// It has ended and only waits for its parent to notice, which some containers' PID 1 never does.
bool is_zombie(pid_t process);

}  // namespace checker

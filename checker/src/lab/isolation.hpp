#pragma once
/// Linux namespaces: what a process sees of processes, mounts, networks and the machine's name.
/// They live as long as a process in them, and when the first process of a PID namespace ends, the
/// kernel kills all others in it. So a lab cannot leave anything behind, however it ends. See
/// namespaces(7) and pid_namespaces(7). All functions throw Error.
#include <sched.h>
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <initializer_list>
#include <string>

#include "process/descriptor.hpp"

namespace checker {

/// The namespaces that a lab's machines have of their own, besides that of processes.
inline constexpr int lab_namespaces = CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC;

/// Whether we are root. Root of a user namespace of our own, where nobody else is known, is none.
bool is_root();

/// Throws Error "Cannot <what>: <errno's words>." if a system call returned -1.
int checked(int result, const std::string& what);

/// Forks; the child is the first process of a new PID namespace and ends with the action, or
/// without a word if that throws. Returns the child as its parent sees it.
pid_t fork_first_process(const std::function<void()>& action);

/// In a mount namespace of our own: what we mount stays here, what the machine mounts still
/// arrives. As system calls do, returns 0, or -1 and errno: EINVAL where / is not a mount point.
int separate_mounts();

/// Gives the calling process, the first of a PID namespace, a name of its machine, /proc, mounts
/// (which still follow those of the machine) and a network without anything in it.
void isolate(const std::string& host_name);

/// Runs the action in a short-lived process within all namespaces of a process; an Error that it
/// throws is thrown here.
void inside(pid_t process, const std::function<void()>& action);

/// Runs the action in the calling process with the network that the descriptor is open on.
void with_network(const Descriptor& network, const std::function<void()>& action);

/// The network that the calling process has now.
Descriptor present_network();

void mount_memory(const std::filesystem::path& folder);
void mount_over(const std::filesystem::path& file, const std::filesystem::path& by);

/// Leaves the terminal, the folder, the environment, the signal handlers and all open files of
/// whoever started us, except those to keep.
void leave_everything(std::initializer_list<int> kept);

/// Standard output and error go there from now on.
void write_to(const std::filesystem::path& log);

/// Whether the process has ended, be it collected or not.
bool has_ended(pid_t process);

/// Waits, 10 s at most, until the process, which need not be a child of ours, is gone with all that
/// depends on it. Returns at once if there is none.
void await_end(pid_t process);

}  // namespace checker

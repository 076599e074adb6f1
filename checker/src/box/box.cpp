#include "box/box.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "lab/isolation.hpp"
#include "process/capture.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

void append(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// The machine's programs and libraries, and what the loader and compilers look up.
std::vector<std::string> system_mount_words() {
  std::vector<std::string> mounts{"--ro-bind", "/usr", "/usr"};
  for (const char* name : {"/bin", "/sbin", "/lib", "/lib64", "/lib32"}) {
    if (fs::is_symlink(name)) {
      append(mounts, {"--symlink", fs::read_symlink(name).string(), name});
    } else if (fs::exists(name)) {
      append(mounts, {"--ro-bind", name, name});
    }
  }
  append(mounts, {"--perms", "0755", "--dir", "/etc"});
  for (const char* name : {"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
                           "/etc/alternatives", "/etc/hosts", "/etc/nsswitch.conf"}) {
    append(mounts, {"--ro-bind-try", name, name});
  }
  return mounts;
}

// Those that bubblewrap makes unasked are for root alone.
void make_parents(const fs::path& path, std::set<fs::path>& made, std::vector<std::string>& words) {
  const auto parent = path.parent_path();
  if (parent == "/" || !made.insert(parent).second) return;
  make_parents(parent, made, words);
  append(words, {"--perms", "0755", "--dir", parent.string()});
}

// Namespaces of its own, but for the network, which is the enclosure's; nothing of it outlives us.
const std::vector<std::string> kAlone{"--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
                                      "--new-session", "--hostname",    "box"};

// Who it is in there. Root becomes somebody else, whose processes the kernel counts for himself.
std::vector<std::string> without_rights() {
  if (!is_root()) {
    return {"--unshare-user", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL"};
  }
  return {"--cap-drop", "ALL",        "--cap-add", "CAP_SETUID",
          "--cap-add",  "CAP_SETGID", "--cap-add", "CAP_SETPCAP"};
}

std::vector<std::string> as_user(uint32_t user) {
  if (!is_root()) return {};
  const auto id = std::to_string(user);
  return {"setpriv",        "--reuid",    id,     "--regid",        id,
          "--clear-groups", "--inh-caps", "-all", "--bounding-set", "-all"};
}

std::vector<std::string> limited(const BoxLimits& limits, bool memory_is_counted) {
  std::vector<std::string> words{"prlimit",
                                 "--core=0",
                                 "--fsize=" + std::to_string(limits.file),
                                 "--nofile=" + std::to_string(limits.descriptors),
                                 "--nproc=" + std::to_string(limits.processes),
                                 "--cpu=" + std::to_string(limits.processor_seconds)};
  if (!memory_is_counted) words.push_back("--data=" + std::to_string(limits.memory));
  return words;
}

// Enters control groups, then becomes the command.
std::vector<std::string> through(const ControlGroup* group) {
  if (!group) return {};
  std::string script;
  for (const auto& door : group->procs_files()) script += "echo $$ > '" + door.string() + "' && ";
  return {"sh", "-c", script + R"(exec "$@")", "sh"};
}

}  // namespace

std::vector<std::string> Box::mount_words(const Mounts& mounts) const {
  auto words = system_mount_words();
  append(words, {"--proc", "/proc", "--dev", "/dev"});
  // Before all that may lie in them: whoever only wants to try clones a course into /tmp.
  if (mounts.scratch.empty()) {
    append(words, {"--dir", "/tmp"});
  } else {
    for (const char* place : {"/tmp", "/dev/shm"}) {
      append(words, {"--bind", mounts.scratch.string(), place});
    }
  }
  std::set<fs::path> made;
  const auto show = [&](const char* how, const fs::path& path) {
    make_parents(path, made, words);
    append(words, {how, path.string(), path.string()});
  };
  const auto is_hidden = [&](const fs::path& path) {
    return std::ranges::any_of(options_.hidden,
                               [&](const fs::path& hidden) { return lies_in(path, hidden); });
  };
  // What must not be seen disappears from the system's folders; what is shown of it comes back.
  for (const auto& path : options_.system) {
    if (!is_hidden(path)) show("--ro-bind", path);
  }
  for (const auto& hidden : options_.hidden) {
    const auto covers = [&](const fs::path& folder) { return lies_in(hidden, folder); };
    if (covers("/usr") || std::ranges::any_of(options_.system, covers)) {
      append(words, {"--tmpfs", hidden.string()});
    }
  }
  for (const auto& path : options_.system) {
    if (is_hidden(path)) show("--ro-bind", path);
  }
  for (const auto& path : mounts.read_only) show("--ro-bind", path);
  for (const auto& path : mounts.writable) show("--bind", path);
  for (const auto& [path, name] : mounts.renamed) {
    append(words, {"--ro-bind", path.string(), name.string()});
  }
  // Made by bubblewrap in memory, without a limit.
  append(words, {"--remount-ro", "/dev", "--remount-ro", "/"});
  return words;
}

Command Box::around(const Command& command, const Mounts& mounts,
                    const std::vector<std::string>& before) const {
  const auto& on = options_.protections;
  Command boxed;
  boxed.only_environment = on.environment;
  boxed.directory = "/";
  boxed.arguments = through(on.limits ? options_.group : nullptr);
  boxed.arguments.emplace_back("bwrap");
  append(boxed.arguments, kAlone);
  if (on.processes) append(boxed.arguments, {"--unshare-pid", "--die-with-parent"});
  append(boxed.arguments,
         on.sight ? mount_words(mounts) : std::vector<std::string>{"--dev-bind", "/", "/"});
  append(boxed.arguments, {"--chdir", command.directory.empty() ? "/" : command.directory.string(),
                           "--setenv", "HOME", "/tmp"});
  for (const auto& entry : command.environment) {
    const auto equals = entry.find('=');
    append(boxed.arguments, {"--setenv", entry.substr(0, equals), entry.substr(equals + 1)});
  }
  append(boxed.arguments, before);
  append(boxed.arguments, command.arguments);
  boxed.environment = {"PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
                       "LC_ALL=C.UTF-8"};
  return boxed;
}

std::vector<std::string> Box::as_sandboxed_user(const BoxLimits& limits) const {
  const auto& on = options_.protections;
  std::vector<std::string> words;
  if (on.rights) append(words, as_user(options_.user));
  if (on.limits) append(words, limited(limits, options_.group != nullptr));
  return words;
}

Command Box::wrap(const Command& command, const Mounts& mounts, const BoxLimits& limits) const {
  std::vector<std::string> before;
  if (options_.protections.rights) append(before, without_rights());
  before.emplace_back("--");
  append(before, as_sandboxed_user(limits));
  return around(command, mounts, before);
}

Command Box::wrap_supervisor(const Command& command, const Mounts& mounts) const {
  const auto id = std::to_string(options_.user);
  write_file(mounts.scratch / "passwd",
             "root:x:0:0::/tmp:/bin/sh\nstudent:x:" + id + ":" + id + "::/tmp:/bin/bash\n");
  write_file(mounts.scratch / "group", "root:x:0:\nstudent:x:" + id + ":\n");
  auto more = mounts;
  more.renamed.emplace_back("/sys", "/sys");
  for (const char* name : {"passwd", "group"}) {
    more.renamed.emplace_back(mounts.scratch / name, fs::path("/etc") / name);
  }
  return around(command, more, {"--cap-add", "ALL", "--"});
}

void Box::hand_over_all(const fs::path& folder) const {
  hand_over(folder);
  for (const auto& entry : fs::recursive_directory_iterator(folder)) hand_over(entry.path());
}

void Box::hand_over(const fs::path& path) const {
  if (!fs::exists(path)) fs::create_directories(path);
  if (is_root() && ::lchown(path.c_str(), options_.user, options_.user) != 0) {
    throw Error("Cannot pass on " + path.string() + ": " + std::strerror(errno) + ".");
  }
}

Exit outcome_in_box(const Exit& of_box) {
  constexpr int last_signal = 64;
  if (of_box.code <= 128 || of_box.code > 128 + last_signal) return of_box;
  return {.code = 0, .signal = of_box.code - 128};
}

std::optional<std::string> Box::refuses() const {
  const Command command{.arguments = {"true"}, .environment = {}, .directory = {}};
  std::string said;
  try {
    const auto tried = capture(wrap(command, {}));
    if (tried.success()) return std::nullopt;
    said = join(split_lines(tried.output), " / ");
  } catch (const Error& error) {
    said = error.what();
  }
  return "Cannot make a box for untrusted programs here (" + said +
         "). Fix: sudo apt-get install bubblewrap; in a container, allow it to make namespaces.";
}

std::vector<fs::path> system_of(const Project& project) {
  std::vector<fs::path> folders;
  const auto add = [&](const fs::path& folder) {
    std::error_code absent;
    if (fs::exists(folder, absent) && !lies_in(folder, "/usr")) folders.push_back(folder);
  };
  const fs::path torch = cached(project, "LIBTORCH_ROOT");
  for (const auto& folder :
       {torch / "lib", torch / "include", torch.parent_path() / "nvidia", project.build / "lib"}) {
    add(folder);
  }
  // <prefix>/bin/clang++, wherever that is: its own headers and libraries lie beside it.
  std::error_code absent;
  const auto compiler = fs::canonical(cached(project, "CMAKE_CXX_COMPILER"), absent);
  if (!absent) add(compiler.parent_path().parent_path());
  return folders;
}

}  // namespace checker

#pragma once
/// A box for programs that nobody trusts: bubblewrap around them, so that they see a read-only
/// system, what they are shown, and nothing else.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "box/control_group.hpp"
#include "process/spawn.hpp"
#include "support/project.hpp"

namespace checker {

/// What one program may use, or all programs together where the machine can count that.
struct BoxLimits {
  uint64_t memory = 4ULL << 30;  ///< bytes; of all together with a ControlGroup, else of each
  uint64_t processes = 200;      ///< and threads
  uint64_t file = 256ULL << 20;  ///< bytes of one file
  uint64_t descriptors = 256;
  uint64_t processor_seconds = 100;  ///< of each process
};

/// What a box keeps from its programs, one by one. All of it, but in tests that show that an attack
/// is one.
struct Protections {
  bool sight = true;        ///< only what is shown is there, and only writable where it may be
  bool processes = true;    ///< none outside is seen, and none outlives its program
  bool environment = true;  ///< of ours there is none
  bool rights = true;       ///< it is nobody, and may do nothing special
  bool limits = true;       ///< BoxLimits hold, and those of control group and folders
  bool network = true;      ///< none but a loopback of its own (see enclosure.hpp)
};

/// What a program in the box sees besides the system's programs and libraries, all of it where it
/// lies outside.
struct Mounts {
  std::vector<std::filesystem::path> read_only, writable;
  std::filesystem::path scratch;  ///< a folder that stands for /tmp and /dev/shm; empty: read-only
  /// What is seen, read-only, under another name.
  std::vector<std::pair<std::filesystem::path, std::filesystem::path>> renamed = {};
};

class Box {
 public:
  /// system: what programs need to be built and to run: LibTorch, a compiler outside /usr.
  /// hidden: what must not be seen even if it lies in a folder of the system. user: who programs
  /// are, if we are root. limits: of the programs that are judged. group: may be null, and must
  /// outlive the box.
  struct Options {
    std::vector<std::filesystem::path> system, hidden;
    uint32_t user = 61'000;
    BoxLimits limits = {};
    const ControlGroup* group = nullptr;
    Protections protections = {};
  };
  explicit Box(Options options) : options_(std::move(options)) {}

  /// The same command in the box. Its environment is what the command says, and no more; its exit
  /// status is the program's, or 128 + the signal that killed it (see outcome_in_box).
  Command wrap(const Command& command, const Mounts& mounts, const BoxLimits& limits = {}) const;

  const BoxLimits& limits() const { return options_.limits; }

  /// The same for a program of ours that shuts others in itself, and needs root's rights for it.
  /// It knows a user of the box's number, "student".
  Command wrap_supervisor(const Command& command, const Mounts& mounts) const;
  /// What stands before a command in there that is to be that user, and within limits.
  std::vector<std::string> as_sandboxed_user(const BoxLimits& limits) const;

  /// Why programs cannot be shut in here, with what fixes it; nothing where they can.
  std::optional<std::string> refuses() const;

  /// Makes a folder, or hands over a file, so that programs in the box may write there.
  void hand_over(const std::filesystem::path& path) const;
  /// With all that is in it.
  void hand_over_all(const std::filesystem::path& folder) const;

 private:
  std::vector<std::string> mount_words(const Mounts& mounts) const;
  /// before: bubblewrap's last words, "--", and what stands before the command itself.
  Command around(const Command& command, const Mounts& mounts,
                 const std::vector<std::string>& before) const;

  Options options_;
};

/// How a program in a box ended.
Exit outcome_in_box(const Exit& of_box);

/// What the programs of this project need besides /usr.
std::vector<std::filesystem::path> system_of(const Project& project);

}  // namespace checker

#pragma once
/// A Slurm of one's own: a controller and some nodes with GPUs that are stand-ins, on this machine,
/// with Slurm's and munge's own daemons. All see the machine's files, as a cluster's nodes see a
/// shared file system. Everything that belongs to a lab lives in namespaces (see isolation.hpp) and
/// is gone when it ends.
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lab/options.hpp"
#include "process/capture.hpp"
#include "process/descriptor.hpp"

namespace checker {

class Lab {
 public:
  /// Starts a lab that ends with this object, or with this process however that ends. Returns once
  /// all nodes are idle. Throws Error with the daemons' last words, or with lab_impossible().
  static Lab start(const LabOptions& options);
  /// One that was started before and left to itself. Its name may be left out if it is the only
  /// one. A lab that another program still owns is found by its name alone. Throws Error if there
  /// is none.
  static Lab find(const std::string& name);

  ~Lab();
  Lab(Lab&& other) noexcept;
  Lab& operator=(Lab&& other) = delete;

  const std::string& name() const { return name_; }
  size_t nodes() const { return nodes_; }
  /// The parent of its daemons and nodes.
  pid_t first_process() const { return first_process_; }
  /// As seen within the lab.
  std::filesystem::path slurm_conf() const;
  /// slurmctld's log and the nodes', as the rest of the machine sees them while the lab lives.
  std::filesystem::path logs() const;

  /// Runs a command on the login node, which is the controller's machine. The environment
  /// ("NAME=value") goes over our own; the directory is where we are if it is empty. Throws Error
  /// if the lab has ended.
  Captured run(const std::vector<std::string>& command,
               const std::vector<std::string>& environment = {},
               const std::filesystem::path& directory = {},
               std::optional<std::chrono::milliseconds> limit = std::nullopt) const;
  /// Becomes a command on the login node, with our terminal and where we are. Returns only on
  /// failure, by throwing Error.
  [[noreturn]] void become(const std::vector<std::string>& command) const;

  /// Slurm's word for each node: {"n1", "idle"}. Nothing if the controller does not answer.
  std::map<std::string, std::string> node_states() const;
  /// Cuts a node's power: all that runs on it is gone. Slurm is not told. Throws Error.
  void kill_node(const std::string& node) const;
  /// Switches it on again and waits until Slurm has noticed. Throws Error.
  void start_node(const std::string& node,
                  std::chrono::seconds patience = std::chrono::seconds(60)) const;

  /// Leaves the lab to itself: it goes on when this object, or process, ends.
  void leave();
  /// Ends the lab; returns when nothing is left of it.
  void end();

 private:
  Lab(std::string name, pid_t first_process, size_t nodes, Descriptor line);

  std::vector<std::string> entering(const std::filesystem::path& directory) const;
  void await_start(const LabOptions& options) const;
  size_t number_of(const std::string& node) const;

  std::string name_;
  pid_t first_process_ = 0;  ///< 0: ended, or moved from
  size_t nodes_ = 0;
  Descriptor line_;  ///< open as long as the lab is ours
};

}  // namespace checker

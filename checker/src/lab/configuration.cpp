#include "lab/configuration.hpp"

#include <algorithm>

#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {

namespace {

constexpr size_t most_nodes = 16, most_gpus = 16;

void check_word(const std::string& word, const std::string& what) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; };
  if (!word.empty() && std::ranges::all_of(word, fits)) return;
  throw Error("\"" + word + "\" is not a name for " + what + ": use letters, digits, - and _.");
}

void check_number(size_t number, size_t least, size_t most, const std::string& what) {
  if (number >= least && number <= most) return;
  throw Error(std::to_string(number) + " " + what + " are impossible: a lab has " +
              std::to_string(least) + " to " + std::to_string(most) + ".");
}

}  // namespace

std::string node_name(size_t number) { return "n" + std::to_string(number); }
std::string node_address(size_t number) { return "10.77.0." + std::to_string(number); }
std::string controller_address() { return "10.77.0.254"; }

std::string slurm_conf(const LabOptions& options, const std::filesystem::path& folder) {
  const std::string here = folder.string(), range = "[1-" + std::to_string(options.nodes) + "]";
  std::string text =
      "ClusterName=lab\nSlurmUser=root\nSlurmctldHost=" + std::string(lab_controller) + "(" +
      controller_address() + ")\n" + "SlurmctldPort=" + std::to_string(lab_controller_port) + "\n";
  // A job that is put back waits until its old credential has expired.
  text += "AuthInfo=socket=" + here + "/munge.socket,cred_expire=5\n";
  text += "StateSaveLocation=" + here + "/state\nSlurmdSpoolDir=" + here + "/spool.%n\n";
  text += "SlurmctldPidFile=" + here + "/slurmctld.pid\nSlurmdPidFile=" + here + "/%n.pid\n";
  text += "SlurmctldSyslogDebug=quiet\nSlurmdSyslogDebug=quiet\nMailProg=/bin/true\n";
  // Nothing that needs control groups, which belong to the machine.
  text += "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\n";
  text += "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n";
  // Nodes have what this file says, whatever slurmd finds; they come back as soon as they answer.
  text += "SlurmdParameters=config_overrides\nReturnToService=2\n";
  // What takes minutes on a cluster takes seconds here.
  text += "SchedulerParameters=batch_sched_delay=0,sched_interval=1\n";
  text += "SlurmdTimeout=10\nMessageTimeout=5\nTCPTimeout=2\nKillWait=2\n";
  text += "FirstJobId=" + std::to_string(options.first_job) + "\n";
  text += "GresTypes=gpu\nNodeName=n" + range + " NodeAddr=10.77.0." + range +
          " CPUs=" + std::to_string(options.cpus_per_node) +
          " RealMemory=" + std::to_string(options.memory_per_node * 1024) +
          " Gres=gpu:" + std::to_string(options.gpus_per_node) + "\n";
  for (const auto& partition : options.partitions) {
    const bool first = &partition == &options.partitions.front();
    text += "PartitionName=" + partition + " Nodes=ALL" + (first ? " Default=YES" : "") + "\n";
  }
  return text;
}

std::string gres_conf(const LabOptions& options, const std::filesystem::path& folder) {
  return "Name=gpu File=" + (folder / "dev").string() + "/nvidia[0-" +
         std::to_string(options.gpus_per_node - 1) + "]" +
         (options.sets_visible_gpus ? "" : " Flags=no_gpu_env") + "\n";
}

std::string lab_hosts(const LabOptions& options) {
  std::string text = "127.0.0.1 localhost\n" + controller_address() + " " + lab_controller + "\n";
  for (size_t number = 1; number <= options.nodes; ++number) {
    text += node_address(number) + " " + node_name(number);
    if (!options.interface_suffix.empty())
      text += " " + node_name(number) + options.interface_suffix;
    text += "\n";
  }
  return text;
}

void check_options(const LabOptions& options) {
  check_number(options.nodes, 1, most_nodes, "nodes");
  check_number(options.gpus_per_node, 1, most_gpus, "GPUs a node");
  check_number(options.cpus_per_node, 1, 1024, "CPUs a node");
  check_number(options.memory_per_node, 1, 1 << 20, "GiB of memory a node");
  if (options.partitions.empty()) throw Error("A lab needs a partition.");
  for (const auto& partition : options.partitions) check_word(partition, "a partition");
  if (!options.reservation.empty()) check_word(options.reservation, "a reservation");
  if (!options.interface_suffix.empty()) check_word(options.interface_suffix, "an interface");
}

}  // namespace checker

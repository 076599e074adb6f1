#include "lab/lab.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <sstream>
#include <thread>

#include "lab/configuration.hpp"
#include "lab/daemons.hpp"
#include "lab/first_process.hpp"
#include "lab/impossible.hpp"
#include "lab/isolation.hpp"
#include "lab/node.hpp"
#include "lab/registry.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

namespace {

std::array<Descriptor, 2> make_line() {
  std::array<int, 2> ends{};
  checked(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), "make a socket");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// A socket's path has room for 108 bytes, and munge's lies in the folder.
void check_length(const fs::path& folder) {
  if (folder.string().size() <= 90) return;
  throw Error(folder.string() +
              " is too long for a lab. Fix: unset WORLDSIZE_LABS, or set it to a shorter path.");
}

// What the first process says within this time; nothing if it says nothing.
std::optional<std::string> hear(const Descriptor& line, std::chrono::milliseconds time) {
  pollfd watched{line.get(), POLLIN, 0};
  if (::poll(&watched, 1, static_cast<int>(time.count())) <= 0) return std::nullopt;
  std::array<char, 16384> text{};
  const auto got = ::recv(line.get(), text.data(), text.size(), MSG_DONTWAIT);
  if (got > 0) return std::string(text.data(), static_cast<size_t>(got));
  return "it was killed.";
}

// Running, whatever it is busy with: Slurm marks a node that does not answer with a star.
bool answers(const std::string& state) {
  return !state.empty() && !state.ends_with('*') && !state.starts_with("down") &&
         !state.starts_with("unk");
}

}  // namespace

Lab::Lab(std::string name, pid_t first_process, size_t nodes, Descriptor line)
    : name_(std::move(name)),
      first_process_(first_process),
      nodes_(nodes),
      line_(std::move(line)) {}

Lab::Lab(Lab&& other) noexcept
    : name_(std::move(other.name_)),
      first_process_(std::exchange(other.first_process_, 0)),
      nodes_(other.nodes_),
      line_(std::move(other.line_)) {}

Lab::~Lab() {
  if (!line_.is_open()) return;
  try {
    end();
  } catch (const std::exception&) {  // a file that is left is swept by the next look
  }
}

Lab Lab::start(const LabOptions& options) {
  if (const auto why = lab_impossible()) throw Error(*why);
  check_options(options);
  auto line = make_line();
  auto claim = claim_lab(options.name);
  const auto folder = lab_folder(claim.name);
  check_length(folder);
  const pid_t first_process =
      fork_first_process([&] { be_first_process(options, folder, line[1], claim.lock); });
  line[1].close();
  Lab lab(claim.name, first_process, options.nodes, std::move(line[0]));
  record_lab({claim.name, first_process, options.nodes, false});
  claim.lock.close();  // the first process has it
  lab.await_start(options);
  return lab;
}

Lab Lab::find(const std::string& name) {
  auto labs = present_labs();
  // Nobody means a lab that another program uses unless they name it.
  if (name.empty()) std::erase_if(labs, [](const LabRecord& lab) { return !lab.stays; });
  std::vector<std::string> names;
  for (const auto& lab : labs) names.push_back(lab.name);
  if (labs.empty()) throw Error("No lab is up. Fix: ./workbook lab up");
  if (name.empty() && labs.size() > 1) {
    throw Error("Several labs are up: " + join(names, ", ") + ". Name one of them.");
  }
  const auto found = name.empty() ? labs.begin() : std::ranges::find(labs, name, &LabRecord::name);
  if (found == labs.end()) {
    throw Error("Unknown lab: " + name + ". Labs that are up: " + join(names, ", ") + ".");
  }
  if (found->first_process == 0) throw Error(found->name + " is still starting.");
  return {found->name, found->first_process, found->nodes, Descriptor()};
}

void Lab::await_start(const LabOptions& options) const {
  const auto deadline = Clock::now() + options.patience;
  bool started = false;
  for (;;) {
    if (const auto word = hear(line_, 20ms)) {
      if (*word != lab_started) throw Error("The lab did not start: " + *word);
      started = true;
    }
    const auto states = started ? node_states() : std::map<std::string, std::string>{};
    const auto idle = [](const auto& node) { return node.second == "idle"; };
    if (states.size() == nodes_ && std::ranges::all_of(states, idle)) break;
    if (Clock::now() < deadline) continue;
    std::string what =
        "The lab did not start in " + std::to_string(options.patience.count()) + " s.";
    for (const std::string name : {"munged", "slurmctld", "n1"}) {
      what += " The last lines of " + name + ":" + last_words(logs().parent_path(), name) + "\n";
    }
    throw Error(what);
  }
  if (options.reservation.empty()) return;
  const auto made =
      run({"scontrol", "create", "reservation", "ReservationName=" + options.reservation,
           "StartTime=now", "Duration=UNLIMITED", "Nodes=ALL", "Users=root"});
  if (made.status != 0) throw Error("Cannot make a reservation: " + made.output);
}

fs::path Lab::slurm_conf() const { return lab_folder(name_) / "slurm.conf"; }

fs::path Lab::logs() const {
  return "/proc/" + std::to_string(first_process_) + "/root" + lab_folder(name_).string() + "/log";
}

std::vector<std::string> Lab::entering(const fs::path& directory) const {
  // Who is killed while waiting for a command takes it along; and Ctrl-C is the command's alone.
  return {"nsenter",
          "--target",
          std::to_string(first_process_),
          "--pid",
          "--mount",
          "--net",
          "--uts",
          "--ipc",
          "setpriv",
          "--pdeathsig",
          "KILL",
          "env",
          "--default-signal=INT,QUIT",
          "--chdir=" + (directory.empty() ? fs::current_path() : directory).string()};
}

Captured Lab::run(const std::vector<std::string>& command,
                  const std::vector<std::string>& environment, const fs::path& directory,
                  std::optional<std::chrono::milliseconds> limit) const {
  if (first_process_ == 0 || has_ended(first_process_)) {
    throw Error("The lab " + name_ + " has ended.");
  }
  Command entered{entering(directory), environment, {}};
  entered.arguments.insert(entered.arguments.end(), command.begin(), command.end());
  entered.environment.push_back("SLURM_CONF=" + slurm_conf().string());
  return capture(entered, limit);
}

void Lab::become(const std::vector<std::string>& command) const {
  auto words = entering({});
  words.insert(words.end(), command.begin(), command.end());
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::setenv("SLURM_CONF", slurm_conf().c_str(), 1);
  for (const int signal : {SIGINT, SIGQUIT}) ::signal(signal, SIG_IGN);
  ::execvp(arguments[0], arguments.data());
  throw Error(std::string("Cannot start nsenter: ") + std::strerror(errno) + ".");
}

std::map<std::string, std::string> Lab::node_states() const {
  const auto said = run({"sinfo", "--noheader", "--Node", "--format=%N %T"}, {}, "/", 10s);
  std::map<std::string, std::string> states;
  if (said.status != 0) return states;
  std::istringstream words(said.output);
  for (std::string node, state; words >> node >> state;) states[node] = state;
  return states;
}

size_t Lab::number_of(const std::string& node) const {
  for (size_t number = 1; number <= nodes_; ++number) {
    if (node == node_name(number)) return number;
  }
  throw Error(name_ + " has no node " + node + "; its nodes are n1 to " + node_name(nodes_) + ".");
}

void Lab::kill_node(const std::string& node) const {
  const pid_t process = find_node(first_process_, number_of(node));
  if (process == 0) throw Error(node + " is not running. Fix: ./workbook lab start " + node);
  ::kill(process, SIGKILL);
  await_end(process);
}

void Lab::start_node(const std::string& node, std::chrono::seconds patience) const {
  const auto number = number_of(node);
  if (find_node(first_process_, number) != 0) throw Error(node + " runs already.");
  const auto folder = lab_folder(name_);
  inside(first_process_, [&] { checker::start_node(folder, number); });
  const auto deadline = Clock::now() + patience;
  while (!answers(node_states()[node])) {
    if (Clock::now() >= deadline || find_node(first_process_, number) == 0) {
      throw Error(node +
                  " does not come back. Its last lines:" + last_words(logs().parent_path(), node));
    }
    std::this_thread::sleep_for(50ms);
  }
}

void Lab::leave() {
  record_lab({name_, first_process_, nodes_, true});
  ::send(line_.get(), lab_stays, std::strlen(lab_stays), MSG_NOSIGNAL);
  line_.close();
}

void Lab::end() {
  const pid_t process = std::exchange(first_process_, 0);
  line_.close();
  if (process == 0) return;
  ::kill(process, SIGKILL);
  await_end(process);
  ::waitpid(process, nullptr, WNOHANG);  // it is our child if we started it
  present_labs();                        // removes its files
}

}  // namespace checker

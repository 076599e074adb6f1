#include <algorithm>
#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "course/render.hpp"
#include "endure/small_run.hpp"
#include "endure/trials.hpp"
#include "jobs/record.hpp"
#include "jobs/site_copy.hpp"
#include "lab/lab.hpp"
#include "process/family.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker::endure {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto kPatience = 5min;  // with a job, all its starts included

using Random = std::mt19937_64;

// All processes below one whose command line holds a word.
void collect(pid_t process, const std::string& word, std::vector<pid_t>& found) {
  for (const pid_t child : children_of(process)) {
    if (command_line_of(child).find(word) != std::string::npos) found.push_back(child);
    collect(child, word, found);
  }
}

// Two nodes with two ranks each, and one job at a time.
class Cluster {
 public:
  Cluster(const fs::path& folder, const ChaosOptions& options)
      : folder_(folder), epochs_(options.epochs), lab_(Lab::start({.gpus_per_node = 2})) {
    const auto course = load_course(options.course);
    const auto& step = first_step_with(course, kResumes);
    name_ = step.name;
    program_ = "solution_" + step.label();
    script_ = course.path_of(step, *course.job_of(step), course.edits_job(step)).string();
    make_course(folder_, course, "", options.venv, [&](const std::string& name) {
      return name == program_ ? options.trials.program : fs::path();
    });
  }

  const std::string& program() const { return program_; }

  std::string submit() const {
    return std::string(
        trim(ask({"sbatch", "--parsable", "--gres=gpu:2", script_, "--config",
                  small_config(folder_).string(), "--epochs", std::to_string(epochs_),
                  "--checkpoint-every", "10", "--device", "cpu"})));
  }

  JobRecord record(const std::string& job) const {
    return parse_job_record(ask({"scontrol", "show", "job", job}));
  }

  std::string model(const std::string& job) const {
    const auto file = folder_ / "output" / (name_ + "-" + job) / "model-final.safetensors";
    return fs::exists(file) ? read_file(file) : "";
  }

  std::string said(const std::string& job) const {
    const auto file = folder_ / (name_ + "-" + job + ".out");
    return fs::exists(file) ? read_file(file) : "";
  }

  void order(const std::vector<std::string>& command) const { lab_.run(command, {}, folder_, 30s); }

  // Kills one process of the job with this in its command line, if there is any.
  void kill_one(const std::string& word, Random& random) const {
    std::vector<pid_t> found;
    collect(lab_.first_process(), word, found);
    if (!found.empty()) ::kill(found[random() % found.size()], SIGKILL);
  }

  // Comes back once Slurm has noticed: of a node that is back before that, Slurm waits for the job
  // step it lost. A real one takes minutes.
  void power_cut(const std::string& node) const {
    lab_.kill_node(node);
    const auto end = Clock::now() + 1min;
    while (!lab_.node_states()[node].starts_with("down") && Clock::now() < end) {
      std::this_thread::sleep_for(200ms);
    }
    lab_.start_node(node);
  }

 private:
  std::string ask(const std::vector<std::string>& command) const {
    const auto answer = lab_.run(command, {}, folder_, 30s);
    if (!answer.success()) throw Error("The lab's Slurm does not answer: " + answer.output);
    return answer.output;
  }

  const fs::path& folder_;
  std::string name_, program_, script_;  ///< of the step that is run
  size_t epochs_;
  Lab lab_;
};

// One thing that happens to a job. Returns what.
std::string disturb(const Cluster& cluster, const std::string& job, Random& random) {
  switch (random() % 5) {
    case 0:
      cluster.kill_one("bin/" + cluster.program(), random);
      return "a rank was killed";
    case 1:
      cluster.kill_one("torchrun", random);
      return "a torchrun was killed";
    case 2:
      cluster.order({"scancel", "--batch", "--signal=USR1", job});
      return "it reached its time limit";
    case 3:
      cluster.order({"scontrol", "requeue", job});
      return "it was requeued";
    default: {
      const std::string node = random() % 2 == 0 ? "n1" : "n2";
      cluster.power_cut(node);
      return node + " lost its power";
    }
  }
}

struct Trial {
  bool completed = false;
  std::vector<std::string> events;
};

// Follows a job to its end, disturbing it up to so many times, and queues it again when it fails.
Trial endure(const Cluster& cluster, const std::string& job, size_t disturbances, Random& random) {
  Trial trial;
  const auto deadline = Clock::now() + kPatience;
  const auto pause = [&] { return std::chrono::milliseconds(500 + random() % 8000); };
  auto next = Clock::now() + pause();
  while (Clock::now() < deadline) {
    const auto record = cluster.record(job);
    if (record.state == "COMPLETED") {
      trial.completed = true;
      return trial;
    }
    if (record.is_over()) {
      trial.events.push_back(record.state);
      cluster.order({"scontrol", "requeue", job});
    } else if (record.state == "RUNNING" && disturbances > 0 && Clock::now() >= next) {
      trial.events.push_back(disturb(cluster, job, random));
      --disturbances;
      next = Clock::now() + pause();
    }
    std::this_thread::sleep_for(200ms);
  }
  return trial;
}

}  // namespace

Outcome chaos_on_a_lab(const ChaosOptions& options) {
  const TemporaryFolder folder;
  fs::permissions(folder.path(), fs::perms(0755));
  const Cluster cluster(folder.path(), options);
  Random random(options.trials.seed);
  const auto first = cluster.submit();
  if (!endure(cluster, first, 0, random).completed) {
    throw Error("The job fails even without disturbance: " + cluster.said(first));
  }
  const auto expected = cluster.model(first);
  size_t events = 0;
  auto outcome = make_trials(options.trials, [&](size_t /*number*/) -> std::string {
    const auto job = cluster.submit();
    const auto trial = endure(cluster, job, 1 + random() % options.disturbances, random);
    events += trial.events.size();
    if (!trial.completed) cluster.order({"scancel", "--full", job});
    if (trial.completed && cluster.model(job) == expected) return "";
    return "job " + job + ": " + join(trial.events, ", ") + ": " +
           (trial.completed ? "other bits" : "lost: " + cluster.said(job));
  });
  outcome.remark = std::to_string(events) + " events";
  return outcome;
}

}  // namespace checker::endure

#pragma once
/// The folder that a job script is submitted from: the script as it is, and instead of trainer and
/// torchrun shims, which write down how they were started and then become the real ones.
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "course/course.hpp"
#include "jobs/job.hpp"
#include "support/project.hpp"

namespace checker {

class JobSite {
 public:
  /// folder: an empty one that all nodes see. options: the trainer's, instead of those that the
  /// script gives; without any, stand-ins take the place of trainer and torchrun, and wait for the
  /// signal that the job is to get.
  JobSite(const Project& project, const Step& step, std::filesystem::path folder,
          const std::string& script, const std::filesystem::path& trainer,
          const std::vector<std::string>& options);

  /// One that was made before.
  JobSite(std::filesystem::path folder, std::filesystem::path script)
      : folder_(std::move(folder)), script_(std::move(script)), seen_(folder_ / "seen") {}

  const std::filesystem::path& folder() const { return folder_; }
  /// From the folder.
  const std::filesystem::path& script() const { return script_; }

  /// Grows as long as the job gets anywhere.
  uint64_t progress() const;
  /// The job is to get a signal.
  bool gets_signal() const;
  /// How many ranks have a file that ends so: see stand_in.hpp.
  size_t count(std::string_view ending) const;
  void let_ranks_stop() const;
  /// How many trainers were started.
  size_t ranks() const;
  /// Adds what the shims saw and what the job wrote.
  void read(JobSeen& job) const;

 private:
  void place_shim(const std::filesystem::path& program, const std::string& kind,
                  const std::string& become) const;

  std::filesystem::path folder_, script_, seen_;
};

}  // namespace checker

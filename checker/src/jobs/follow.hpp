#pragma once
/// Follows a job in the queue and while it runs: what becomes of it, and what it says.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "jobs/record.hpp"
#include "process/lines.hpp"

namespace checker {

class JobFollower {
 public:
  using Say = std::function<void(std::string_view line)>;

  /// news: told of each change of state; output: of each line that the job writes.
  JobFollower(Say news, Say output) : news_(std::move(news)), lines_(std::move(output)) {}

  /// What Slurm says now. Tells what has changed since the last look.
  void look(const JobRecord& now);

 private:
  void read_on(const std::filesystem::path& file);

  Say news_;
  LineCutter lines_;
  std::string told_;
  uint64_t position_ = 0;  ///< bytes of the output that were told
};

}  // namespace checker

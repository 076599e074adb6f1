#pragma once
// Runs trainers, freshly rendered and built, as a student would run them.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "course/course.hpp"
#include "files.hpp"
#include "process/trainer.hpp"

namespace checker::testing {

/// The step of this number: 2 is 02_setup.
const Step& numbered(int number);

/// The program of a step's solution.
std::filesystem::path solution(int number);

/// One that works, or an empty text: not every Python can import torch.
std::string torchrun();

struct TrainerOutcome {
  GroupResult result;
  std::vector<std::vector<std::string>> lines;  ///< of each rank, standard output
  std::string everything;

  /// The numbers after this phrase, in the order in which a rank printed them.
  std::vector<double> numbers_after(const std::string& phrase, size_t rank = 0) const;
};

using Arguments = std::vector<std::string>;

class TrainerTest : public ::testing::Test {
 protected:
  using Listener = std::function<void(size_t rank, std::string_view line)>;

  /// On the CPU, with the tiny configuration if options name no other.
  TrainerOutcome run(const std::filesystem::path& program, size_t world_size, Arguments options,
                     const Listener& listen = nullptr) const;

  std::filesystem::path output() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

}  // namespace checker::testing

// What the exercises are given: see tasks/exercise.hpp.
#include "tasks/exercise.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <cstdlib>
#include <fstream>

#include "errors.hpp"
#include "instrumentation/numbers.hpp"
#include "tasks/options.hpp"
#include "temporary_folder.hpp"

namespace tasks {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

torch::Tensor numbers_on(const char* rank, const char* seed) {
  ::setenv("RANK", rank, 1);
  ::setenv(instrumentation::kNumbersSeed, seed, 1);
  auto numbers = my_numbers(4);
  ::unsetenv("RANK");
  ::unsetenv(instrumentation::kNumbersSeed);
  return numbers;
}

TEST(Exercise, NumbersAreThoseOfTheRankAndTheSeed) {
  const auto numbers = numbers_on("2", "77");
  EXPECT_EQ(numbers.scalar_type(), torch::kDouble);
  EXPECT_TRUE(torch::equal(
      numbers, torch::tensor(instrumentation::numbers_of_rank(77, 2, 4), torch::kDouble)));
  EXPECT_TRUE(torch::equal(numbers, numbers_on("2", "77")));
  EXPECT_FALSE(torch::equal(numbers, numbers_on("1", "77")));
  EXPECT_FALSE(torch::equal(numbers, numbers_on("2", "78")));
}

TEST(Exercise, AFileHoldsTheNumbersThatWereWritten) {
  const TemporaryFolder folder;
  const auto numbers = torch::tensor({12.0, 34.5, 56.0}, torch::kDouble);
  write_numbers(folder.path() / "numbers.txt", numbers);
  EXPECT_TRUE(torch::equal(read_numbers(folder.path() / "numbers.txt"), numbers));
}

TEST(Exercise, AFileThatIsNotThereYetIsAnErrorInWords) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { read_numbers(folder.path() / "numbers.txt"); },
              ThrowsMessage<Error>(HasSubstr("does not exist, or is empty. Fix: ")));
  std::ofstream(folder.path() / "empty.txt").flush();
  EXPECT_THAT([&] { read_numbers(folder.path() / "empty.txt"); },
              ThrowsMessage<Error>(HasSubstr("empty.txt does not exist, or is empty")));
}

TEST(Exercise, ShowPrintsTheNameAndTheNumbers) {
  testing::internal::CaptureStdout();
  show("sum", torch::tensor({{1.0, 2.5}, {3.0, 4.0}}));
  show("rank", 3);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "sum: 1 2.5 3 4\nrank: 3\n");
}

}  // namespace
}  // namespace tasks

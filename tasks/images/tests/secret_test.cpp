// What a judge asks of a task's small runs.
#include "tasks/secret.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <set>

#include "tasks/task.hpp"
#include "temporary_folder.hpp"

namespace tasks::images {
namespace {

Options secret_options(uint64_t seed, const std::filesystem::path& folder) {
  auto words = make_secret("images", seed, folder);
  words.insert(words.begin(), {"trainer", "--task", "images"});
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

at::Tensor all_of(const Task& task, std::string_view split) {
  auto dataset = task.dataset(split);
  std::vector<size_t> all;
  for (size_t i = 0; i < *dataset.size(); ++i) all.push_back(i);
  return dataset.get_batch(all).input[0];
}

TEST(Secret, IsTheSameForTheSameSeedAndDiffersOtherwise) {
  const TemporaryFolder one, same, other;
  const auto first = make_task(secret_options(7, one.path()));
  const auto again = make_task(secret_options(7, same.path()));
  const auto others = make_task(secret_options(8, other.path()));
  EXPECT_TRUE(torch::equal(all_of(*first, "train"), all_of(*again, "train")));
  EXPECT_FALSE(torch::equal(all_of(*first, "train")[0], all_of(*others, "train")[0]));
}

// By its samples' values a judge knows which ones a program used.
TEST(Secret, SamplesAreDistinctAndSplitsHaveSizesThatNoWorldDivides) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const TemporaryFolder folder;
    const auto options = secret_options(seed, folder.path());
    EXPECT_EQ(options.precision, torch::kFloat64);
    const auto task = make_task(options);
    std::set<std::vector<double>> inputs;
    std::set<int64_t> sizes;
    int64_t samples = 0;
    for (const auto& split : task->splits()) {
      const auto pictures = all_of(*task, split).flatten(1);
      const auto size = pictures.size(0);
      EXPECT_TRUE(size % 2 != 0 && size % 3 != 0) << split << " has " << size;
      EXPECT_TRUE(sizes.insert(size).second) << split << " has " << size;
      samples += size;
      for (int64_t i = 0; i < size; ++i) {
        const auto row = pictures[i].contiguous();
        inputs.insert({row.const_data_ptr<double>(), row.const_data_ptr<double>() + row.numel()});
      }
    }
    EXPECT_EQ(static_cast<int64_t>(inputs.size()), samples) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tasks::images

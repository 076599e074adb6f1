// What a judge asks of this task's small runs.
#include "tasks/secret.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <map>
#include <set>

#include "tasks/task.hpp"
#include "temporary_folder.hpp"
#include "written.hpp"

namespace tasks::weather {
namespace {

std::map<std::string, std::string> files_in(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    files[std::filesystem::relative(entry.path(), folder).string()] = bytes_of(entry.path());
  }
  return files;
}

Options options_of(uint64_t seed, const std::filesystem::path& folder) {
  auto words = make_secret("weather", seed, folder);
  words.insert(words.begin(), {"trainer", "--task", "weather"});
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

TEST(WeatherSecret, IsTheSameForTheSameSeedAndDiffersOtherwise) {
  const TemporaryFolder one, same, other;
  const auto options = make_secret("weather", 7, one.path());
  make_secret("weather", 7, same.path());
  EXPECT_NE(make_secret("weather", 8, other.path()), options);
  EXPECT_EQ(files_in(one.path()), files_in(same.path()));
  EXPECT_NE(files_in(one.path()).at("data/valid/1992.h5"),
            files_in(other.path()).at("data/valid/1992.h5"));
}

// By its samples' values a judge knows which ones a program used. Splits' sizes divide by no world.
TEST(WeatherSecret, SamplesAreDistinctAndRunsExact) {
  for (uint64_t seed = 0; seed < 9; ++seed) {
    const TemporaryFolder folder;
    const auto options = options_of(seed, folder.path());
    EXPECT_EQ(options.precision, torch::kFloat64);
    const auto task = make_task(options);
    std::set<std::vector<double>> inputs;
    std::set<size_t> sizes;
    size_t samples = 0;
    for (const auto& split : task->splits()) {
      auto dataset = task->dataset(split);
      const auto size = *dataset.size();
      EXPECT_TRUE(size % 2 != 0 && size % 3 != 0 && sizes.insert(size).second) << size;
      for (size_t id = 0; id < size; ++id, ++samples) {
        const auto row = dataset.get_batch({id}).input[0].flatten();
        ASSERT_EQ(row.dtype(), torch::kDouble);
        const auto* values = row.const_data_ptr<double>();
        inputs.insert({values, values + row.numel()});
      }
    }
    EXPECT_EQ(inputs.size(), samples) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tasks::weather

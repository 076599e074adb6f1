// What a judge asks of a task's small runs.
#include "tasks/secret.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <iterator>
#include <map>
#include <set>

#include "errors.hpp"
#include "tasks/task.hpp"
#include "temporary_folder.hpp"

namespace tasks {
namespace {

/// All files below a folder, by their names from there.
std::map<std::string, std::string> files_in(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    files[std::filesystem::relative(entry.path(), folder).string()] =
        std::string(std::istreambuf_iterator<char>(in), {});
  }
  return files;
}

TEST(Secret, IsTheSameForTheSameSeedAndDiffersOtherwise) {
  const TemporaryFolder one, same, other;
  const auto options = make_secret("language_model", 7, one.path());
  EXPECT_EQ(make_secret("language_model", 7, same.path()).size(), options.size());
  EXPECT_NE(make_secret("language_model", 8, other.path()), options);
  EXPECT_EQ(files_in(one.path()), files_in(same.path()));
  EXPECT_NE(files_in(one.path()).at("data/train.txt"), files_in(other.path()).at("data/train.txt"));
}

std::shared_ptr<Task> secret_task(uint64_t seed, const std::filesystem::path& folder) {
  auto words = make_secret("language_model", seed, folder);
  words.insert(words.begin(), "trainer");
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  return make_task(parse_options(static_cast<int>(arguments.size()), arguments.data()));
}

// By its samples' values a judge knows which ones a program used.
TEST(Secret, SamplesAreDistinctAcrossSplits) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const TemporaryFolder folder;
    const auto task = secret_task(seed, folder.path());
    std::set<std::vector<int64_t>> inputs;
    size_t samples = 0;
    for (const auto& split : task->splits()) {
      auto dataset = task->dataset(split);
      for (size_t id = 0; id < *dataset.size(); ++id, ++samples) {
        const auto row = dataset.get_batch({id}).input[0].to(torch::kLong).flatten();
        const auto* values = row.const_data_ptr<int64_t>();
        inputs.insert({values, values + row.numel()});
      }
    }
    EXPECT_EQ(inputs.size(), samples) << "seed " << seed;
  }
}

TEST(Secret, SplitsHaveSizesThatNoWorldDividesAndRunsAreExact) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const TemporaryFolder folder;
    auto words = make_secret("language_model", seed, folder.path());
    words.insert(words.begin(), "trainer");
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    const auto options = parse_options(static_cast<int>(arguments.size()), arguments.data());
    EXPECT_EQ(options.precision, torch::kFloat64);
    const auto task = make_task(options);
    std::set<size_t> sizes;
    for (const auto& split : task->splits()) {
      const auto size = *task->dataset(split).size();
      EXPECT_TRUE(size % 2 != 0 && size % 3 != 0) << split << " has " << size;
      EXPECT_TRUE(sizes.insert(size).second) << split << " has " << size;
    }
  }
}

TEST(Secret, OfAnUnknownTaskIsAnError) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { make_secret("language_modle", 7, folder.path()); }),
              testing::HasSubstr("language_modle"));
}

}  // namespace
}  // namespace tasks

// The seams of task.hpp, and what they record.
#include "tasks/task.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "distributed_utils/recording.hpp"
#include "tasks/progress.hpp"
#include "tasks/recorded.hpp"
#include "temporary_folder.hpp"

namespace tasks {
namespace {

using distributed_utils::recording::Kind;
using testing::DoubleEq;
using testing::ElementsAre;

struct Numbers : Dataset::Source {
  Batch fetch(c10::ArrayRef<size_t> indices) const override {
    std::vector<double> values(indices.begin(), indices.end());
    const auto x = torch::tensor(values, torch::kDouble).unsqueeze(1);
    return {x, 2 * x};
  }
  size_t size() const override { return 5; }
};

struct Linear : Model {
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(1, 1));
  torch::Tensor forward(const Input& input) override { return linear(input); }
};

class Fit : public Task {
 public:
  explicit Fit(torch::Dtype precision) : Task(precision) {}
  Marks marks() const override { return {}; }

 private:
  std::shared_ptr<const Dataset::Source> new_source(std::string_view) const override {
    return std::make_shared<Numbers>();
  }
  std::string in_words(double) const override { return {}; }
  std::shared_ptr<Model> new_model() const override { return std::make_shared<Linear>(); }
  std::unique_ptr<torch::optim::Optimizer> new_optimizer(
      std::vector<torch::Tensor> parameters) const override {
    return std::make_unique<Recorded<torch::optim::SGD>>(parameters, /*lr=*/0.1);
  }
  Loss compute_loss(const torch::Tensor& output, const Target& target) const override {
    return {(output - target.tensor()).square().sum(), target.count()};
  }
};

TEST(Dataset, FetchesInTheOrderOfTheIndices) {
  auto dataset = Fit(torch::kDouble).dataset("train");
  const std::vector<size_t> indices{3, 0, 3};
  EXPECT_TRUE(torch::equal(dataset.get_batch(indices).input,
                           torch::tensor({3.0, 0.0, 3.0}, torch::kDouble).unsqueeze(1)));
  EXPECT_EQ(dataset.size(), 5u);
}

TEST(Dataset, RefusesIndicesBeyondItsSize) {
  auto dataset = Fit(torch::kDouble).dataset("train");
  const std::vector<size_t> indices{0, 5};
  EXPECT_THROW(dataset.get_batch(indices), c10::IndexError);
}

TEST(Task, MakesModelsInThePrecisionOfTheOptions) {
  EXPECT_EQ(Fit(torch::kDouble).make_model()->parameters()[0].dtype(), torch::kDouble);
  EXPECT_EQ(Fit(torch::kFloat).make_model()->parameters()[0].dtype(), torch::kFloat);
}

TEST(Task, FormatsLossesWithTheDigitsOfThePrecision) {
  EXPECT_EQ(Fit(torch::kFloat).format(4.5), "4.50000");
  EXPECT_EQ(Fit(torch::kDouble).format(0.1234567890123456), "0.123456789012346");
}

// What is recorded below. Here it runs without recording, and must run as well; the test below runs
// it in a process of its own, because recording is decided when a process starts.
TEST(Recording, OneStep) {
  const Fit task(torch::kDouble);
  auto dataset = task.dataset("validation");
  const std::vector<size_t> indices{1, 2};
  const auto batch = dataset.get_batch(indices);
  const auto [input, target] = batch.to(torch::kCPU);
  batch.to(torch::kCPU);
  const auto model = task.make_model();
  const auto optimizer = task.make_optimizer(model->parameters());
  torch::NoGradGuard no_grad;
  for (auto& parameter : model->parameters()) parameter.zero_();
  {
    torch::AutoGradMode gradients(true);
    task.loss(model->forward(input), target).mean().backward();
  }
  task.loss(model->forward(input), target);
  optimizer->step();
  model->parameters()[0].mutable_grad().reset();
  optimizer->step();
  Options options;
  options.batch_size = 1;
  Progress(options, 5).report(2.5, 3.5);
}

struct Record {
  Kind kind;
  std::string payload;

  template <class Number>
  std::vector<Number> numbers() const {
    std::vector<Number> result(payload.size() / sizeof(Number));
    std::memcpy(result.data(), payload.data(), result.size() * sizeof(Number));
    return result;
  }
};

std::vector<Record> read_records(const std::filesystem::path& path) {
  using namespace distributed_utils::recording;
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  uint64_t end = 0;
  std::memcpy(&end, bytes.data() + offsetof(Header, reserved), sizeof end);
  std::vector<Record> records;
  for (size_t at = sizeof(Header); at < end;) {
    uint32_t size = 0;
    Kind kind{};
    std::memcpy(&size, bytes.data() + at, sizeof size);
    std::memcpy(&kind, bytes.data() + at + offsetof(RecordHeader, kind), sizeof kind);
    records.push_back({kind, bytes.substr(at + sizeof(RecordHeader), size)});
    at += (sizeof(RecordHeader) + size + 7) / 8 * 8;
  }
  return records;
}

std::vector<Record> run_recorded() {
  const TemporaryFolder folder;
  const auto log = folder.write("log", std::string(1 << 20, '\0'));
  const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
  const auto command = "DISTRIBUTED_UTILS_RECORD='" + log.string() + "' '" + self +
                       "' --gtest_filter=Recording.OneStep > /dev/null";
  EXPECT_EQ(std::system(command.c_str()), 0);
  return read_records(log);
}

TEST(Recording, TellsWhatATaskWasMadeToDo) {
  std::vector<Record> records;
  std::vector<Kind> kinds;
  for (auto& record : run_recorded()) {
    if (record.kind == Kind::start || record.kind == Kind::exit) continue;
    kinds.push_back(record.kind);
    records.push_back(std::move(record));
  }
  ASSERT_THAT(kinds,
              ElementsAre(Kind::fetch, Kind::device, Kind::taken, Kind::taken, Kind::parameters,
                          Kind::loss, Kind::loss, Kind::values, Kind::gradients, Kind::values,
                          Kind::gradients, Kind::reported, Kind::reported));
  EXPECT_THAT(records[0].numbers<uint64_t>(), ElementsAre(1, 1, 2));  // validation: 1 and 2
  EXPECT_EQ(records[1].payload, "cpu");
  EXPECT_EQ(records[2].payload, records[0].payload);
  EXPECT_NE(records[4].payload.find("linear.weight"), std::string::npos);
  EXPECT_NE(records[4].payload.find("linear.bias"), std::string::npos);
  // A model of zeros against targets 2 and 4; gradients of the mean of (w x + b - y)^2.
  EXPECT_THAT(records[5].numbers<double>(), ElementsAre(20, 2, 1));
  EXPECT_THAT(records[6].numbers<double>(), ElementsAre(20, 2, 0));
  EXPECT_THAT(records[7].numbers<double>(), ElementsAre(0, 0));
  EXPECT_THAT(records[8].numbers<double>(), ElementsAre(-10, -6));
  EXPECT_THAT(records[9].numbers<double>(), ElementsAre(DoubleEq(1), DoubleEq(0.6)));
  EXPECT_THAT(records[10].numbers<double>(), ElementsAre(0, -6));  // one gradient was taken away
  EXPECT_THAT(records[11].numbers<double>(), ElementsAre(2.5));
  EXPECT_THAT(records[12].numbers<double>(), ElementsAre(3.5));
}

}  // namespace
}  // namespace tasks

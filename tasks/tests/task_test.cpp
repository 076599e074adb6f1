// The seams of task.hpp, and what they record.
#include "tasks/task.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include "instrumentation/log.hpp"
#include "tasks/progress.hpp"
#include "tasks/recorded.hpp"
#include "temporary_folder.hpp"

namespace tasks {
namespace {

using instrumentation::Kind;
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
  torch::Tensor compute(const Input& input) override { return linear(input); }
};

class Fit : public Task {
 public:
  explicit Fit(torch::Dtype precision) : Task(precision) {}
  Baselines baselines() const override { return {}; }

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

TEST(Batch, GoesToAGpuAsItLiesAndMakesTheNextOnesPinned) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "LibTorch finds no usable GPU here";
  const auto pictures = torch::rand({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  const auto there = Batch{pictures, torch::ones({2})}.to(torch::kCUDA);
  EXPECT_TRUE(there.input[0].is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(torch::equal(there.input[0].cpu(), pictures));
  const auto next = new_tensor({3}, torch::kLong);
  EXPECT_TRUE(next.is_pinned());
  EXPECT_TRUE(torch::equal(Target(next.fill_(7)).to(torch::kCUDA).tensor().cpu(), next));
}

TEST(Task, MakesModelsInThePrecisionOfTheOptions) {
  EXPECT_EQ(Fit(torch::kDouble).make_model()->parameters()[0].dtype(), torch::kDouble);
  EXPECT_EQ(Fit(torch::kFloat).make_model()->parameters()[0].dtype(), torch::kFloat);
}

TEST(Task, DrawsModelsInTheirPrecision) {
  const auto weight = Fit(torch::kDouble).make_model()->parameters()[0].item<double>();
  EXPECT_NE(weight, static_cast<double>(static_cast<float>(weight)));  // more bits than fp32 has
  EXPECT_EQ(torch::get_default_dtype(), caffe2::TypeMeta::Make<float>());
}

struct Normed : Linear {
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(1));
};

struct FitNormed : Fit {
  using Fit::Fit;
  std::shared_ptr<Model> new_model() const override { return std::make_shared<Normed>(); }
};

TEST(Task, LeavesCountsWholeNumbers) {
  const auto model = FitNormed(torch::kHalf).make_model();
  const auto buffers = model->named_buffers();
  EXPECT_EQ(buffers["norm.running_var"].dtype(), torch::kHalf);
  EXPECT_EQ(buffers["norm.num_batches_tracked"].dtype(), torch::kLong);
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
  namespace format = instrumentation;
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  format::Header header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  std::vector<Record> records;
  for (size_t at = sizeof header; at < header.length;) {
    format::RecordHeader record{};
    std::memcpy(&record, bytes.data() + at, sizeof record);
    records.push_back({record.kind, bytes.substr(at + sizeof record, record.size)});
    at += format::padded(sizeof record + record.size);
  }
  return records;
}

std::vector<Record> run_recorded() {
  const TemporaryFolder folder;
  const auto log = folder.write("log", std::string(1 << 20, '\0'));
  const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
  const auto command = "WORLDSIZE_RECORD='" + log.string() + "' '" + self +
                       "' --gtest_filter=Recording.OneStep > /dev/null";
  EXPECT_EQ(std::system(command.c_str()), 0);
  return read_records(log);
}

TEST(Recording, TellsWhatATaskWasMadeToDo) {
  std::map<Kind, std::vector<Record>> of;
  std::vector<Kind> kinds;
  for (auto& record : run_recorded()) {
    if (record.kind == Kind::maps || record.kind == Kind::exit) continue;
    if (record.kind == Kind::allocated) continue;  // the memory of tensors, which memory_test tests
    kinds.push_back(record.kind);
    of[record.kind].push_back(std::move(record));
  }
  ASSERT_THAT(kinds,
              ElementsAre(Kind::splits, Kind::metrics, Kind::fetch, Kind::samples, Kind::device,
                          Kind::model, Kind::generator, Kind::forward, Kind::targets, Kind::loss,
                          Kind::backward, Kind::backward_ended, Kind::forward, Kind::targets,
                          Kind::loss, Kind::stepping, Kind::learning_rates, Kind::values,
                          Kind::gradients, Kind::stepping, Kind::learning_rates, Kind::values,
                          Kind::gradients, Kind::progress, Kind::reported, Kind::reported));
  EXPECT_EQ(of[Kind::splits][0].payload, "train\nvalidation\ntest");
  EXPECT_THAT(of[Kind::fetch][0].numbers<uint64_t>(), ElementsAre(1, 1, 2));  // validation: 1, 2
  EXPECT_EQ(of[Kind::device][0].payload, "cpu");
  const auto samples = of[Kind::samples][0].numbers<uint64_t>();
  ASSERT_THAT(samples, ElementsAre(1, testing::_, 1, testing::_, testing::_, 2, testing::_,
                                   testing::_));  // split, size; index, fingerprints
  EXPECT_NE(of[Kind::model][0].payload.find("linear.weight"), std::string::npos);
  EXPECT_NE(of[Kind::model][0].payload.find("linear.bias"), std::string::npos);
  EXPECT_THAT(of[Kind::forward][0].numbers<uint64_t>(), ElementsAre(1, 1, samples[3], samples[6]));
  EXPECT_THAT(of[Kind::forward][1].numbers<uint64_t>(), ElementsAre(1, 0, samples[3], samples[6]));
  EXPECT_THAT(of[Kind::targets][0].numbers<uint64_t>(), ElementsAre(samples[4], samples[7]));
  EXPECT_THAT(of[Kind::backward][0].numbers<uint64_t>(), ElementsAre(0));
  EXPECT_THAT(of[Kind::backward_ended][0].numbers<uint64_t>(), ElementsAre(0));
  EXPECT_THAT(of[Kind::stepping][0].numbers<uint64_t>(), ElementsAre(0, 0, 1));
  // A model of zeros against targets 2 and 4; gradients of the mean of (w x + b - y)^2.
  EXPECT_THAT(of[Kind::loss][0].numbers<double>(), ElementsAre(20, 2, 1));
  EXPECT_THAT(of[Kind::loss][1].numbers<double>(), ElementsAre(20, 2, 0));
  EXPECT_THAT(of[Kind::learning_rates][0].numbers<double>(), ElementsAre(0.1));
  EXPECT_THAT(of[Kind::values][0].numbers<double>(), ElementsAre(0, 0));
  EXPECT_THAT(of[Kind::gradients][0].numbers<double>(), ElementsAre(-10, -6));
  EXPECT_THAT(of[Kind::values][1].numbers<double>(), ElementsAre(DoubleEq(1), DoubleEq(0.6)));
  EXPECT_THAT(of[Kind::gradients][1].numbers<double>(), ElementsAre(0, -6));  // one taken away
  EXPECT_THAT(of[Kind::reported][0].numbers<double>(), ElementsAre(2.5));
  EXPECT_THAT(of[Kind::reported][1].numbers<double>(), ElementsAre(3.5));
}

}  // namespace
}  // namespace tasks

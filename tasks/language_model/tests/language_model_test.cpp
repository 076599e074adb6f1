// The task as a trainer sees it.
#include <torch/torch.h>

#include <cmath>
#include <map>

#include "corpus/corpus.hpp"
#include "data.hpp"
#include "distributed_utils/ddp.hpp"
#include "distributed_utils/setup.hpp"
#include "errors.hpp"
#include "ranks.hpp"
#include "tasks/task.hpp"
#include "temporary_folder.hpp"

namespace tasks::language_model {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class LanguageModelTest : public testing::Test {
 protected:
  Options options(const std::string& yaml) const {
    Options options;
    options.config = folder_.write("mine.yaml", yaml).string();
    options.precision = torch::kFloat64;
    return options;
  }

  TemporaryFolder folder_;
};

const std::string small =
    "base: laptop\nwidth: 32\nheads: 2\nlayers: 1\nfeed_forward: 64\ndropout: 0\n"
    "corpus_words: 20000\nlearning_rate: 1e-2\n";

double mark(const Task& task, const std::string& name) {
  for (const auto& [key, value] : task.baselines()) {
    if (key == name) return value;
  }
  return NAN;
}

double evaluate(const Task& task, Model& model) {
  const torch::NoGradGuard no_grad;
  model.eval();
  auto dataset = task.dataset("validation");
  auto loader = torch::data::make_data_loader(
      dataset, torch::data::samplers::SequentialSampler(*dataset.size()), 32);
  auto totals = torch::zeros({2}, torch::kDouble);
  for (auto& batch : *loader) {
    totals += task.loss(model.forward(batch.input), batch.target).totals();
  }
  return (totals[0] / totals[1]).item<double>();
}

void train(const Task& task, Model& model, int steps) {
  model.train();
  const auto optimizer = task.make_optimizer(model.parameters());
  auto dataset = task.dataset("train");
  for (int step = 0; step < steps; ++step) {
    std::vector<size_t> indices(32);
    for (size_t i = 0; i < 32; ++i) indices[i] = (size_t(step) * 32 + i) * 7919 % *dataset.size();
    const auto batch = dataset.get_batch(indices);
    optimizer->zero_grad();
    task.loss(model.forward(batch.input), batch.target).mean().backward();
    optimizer->step();
  }
}

// The validation split's own -ln p a word, less three standard errors of it.
double least_honest_loss(uint64_t seed, int64_t words) {
  const corpus::Grammar grammar;
  const auto text = corpus::generate(grammar, seed, words);
  const auto end = grammar.lexicon().id({.kind = corpus::Kind::eos});
  const double entropy = grammar.entropy();
  double squares = 0;
  for (auto at = text.begin(); at != text.end();) {
    const auto next = std::find(at, text.end(), end) + 1;
    const auto sentence = *grammar.parse({at, next});
    squares += std::pow(grammar.log_probability(sentence) + entropy * double(next - at), 2);
    at = next;
  }
  return entropy - 3 * std::sqrt(squares) / double(text.size());
}

TEST_F(LanguageModelTest, LearnsMoreThanFrequenciesAndNotMoreThanThereIs) {
  torch::manual_seed(0);
  auto fp32 = options(small);
  fp32.precision = torch::kFloat32;
  const auto task = make_task(fp32);
  const auto model = task->make_model();
  const double untrained = evaluate(*task, *model);
  EXPECT_NEAR(untrained, std::log(1802), 0.5);
  train(*task, *model, 150);
  const double trained = evaluate(*task, *model);
  EXPECT_LT(trained, mark(*task, "unigram") - 1.0);
  EXPECT_GT(trained, least_honest_loss(/*seed=*/1, 2000));
}

TEST_F(LanguageModelTest, KnowsItsMarks) {
  const auto task = make_task(options(small));
  EXPECT_NEAR(mark(*task, "entropy floor"), 2.6425932583, 1e-9);
  EXPECT_GT(mark(*task, "unigram"), 5);
  EXPECT_THAT(task->describe(4.49), AllOf(HasSubstr("4.490 nats a word (perplexity 89.1; unigram "),
                                          HasSubstr(", entropy floor 2.643)")));
}

TEST_F(LanguageModelTest, StatesNoFloorWhereWordsAreLeftOut) {
  EXPECT_TRUE(
      std::isnan(mark(*make_task(options(small + "vocabulary_size: 1801\n")), "entropy floor")));
  EXPECT_FALSE(
      std::isnan(mark(*make_task(options(small + "vocabulary_size: 1802\n")), "entropy floor")));
}

TEST_F(LanguageModelTest, LossIsASumAndACount) {
  const auto task = make_task(options(small));
  const auto logits = torch::randn({2, 3, 5}, torch::kDouble);
  const auto target = torch::tensor({{0, 1, 2}, {3, 4, 0}}, torch::kLong);
  const auto loss = task->loss(logits, target);
  EXPECT_EQ(loss.count, 6);
  const auto expected = -logits.log_softmax(-1).gather(2, target.unsqueeze(2)).sum();
  EXPECT_NEAR(loss.sum.item<double>(), expected.item<double>(), 1e-12);
}

TEST_F(LanguageModelTest, EvaluatesEveryWordOnceAndTrainsOnOverlappingWindows) {
  const auto task = make_task(options(small));
  const auto words = int64_t(corpus::generate(corpus::Grammar(), 1, 2000).size());
  EXPECT_EQ(int64_t(*task->dataset("validation").size()), (words - 1) / 32);
  const auto train = int64_t(corpus::generate(corpus::Grammar(), 0, 20000).size());
  EXPECT_EQ(int64_t(*task->dataset("train").size()), (train - 33) / 16 + 1);
}

TEST_F(LanguageModelTest, SplitsDifferAndFollowTheCorpusSeed) {
  const auto first = [&](const std::string& yaml, const std::string& split) {
    auto dataset = make_task(options(yaml))->dataset(split);
    return dataset.get_batch(std::vector<size_t>{0}).input[0];
  };
  EXPECT_FALSE(torch::equal(first(small, "train"), first(small, "validation")));
  EXPECT_FALSE(torch::equal(first(small, "validation"), first(small, "test")));
  EXPECT_TRUE(torch::equal(first(small, "train"), first(small, "train")));
  const auto other = small + "corpus_seed: 1\n";
  EXPECT_FALSE(torch::equal(first(small, "train"), first(other, "train")));
}

TEST_F(LanguageModelTest, ReadsAFolder) {
  folder_.write("train.txt", "a b b\nc b\n");
  folder_.write("valid.txt", "b new\n");
  folder_.write("test.txt", "a a a\n");
  auto with_data = options(small + "sequence_length: 2\nstride: 1\n");
  with_data.data = folder_.path();
  const auto task = make_task(with_data);
  // Training counts, each and one more: <unk> 1, <eos> 3, b 4, a 2, c 2.
  EXPECT_NEAR(mark(*task, "unigram"),
              -(std::log(4.0 / 12) + std::log(1.0 / 12) + std::log(3.0 / 12)) / 3, 1e-12);
  EXPECT_TRUE(std::isnan(mark(*task, "entropy floor")));
  EXPECT_EQ(task->dataset("train").size(), 5u);
  folder_.write("valid.txt", "b\n");
  EXPECT_THAT(error_of([&] { make_task(with_data); }),
              AllOf(HasSubstr("validation split has 2 words"), HasSubstr("sequence_length")));
}

TEST_F(LanguageModelTest, RefusesSettingsThatDoNotFit) {
  EXPECT_THAT(error_of([&] { make_task(options(small + "heads: 3\n")); }),
              HasSubstr("appears twice"));
  EXPECT_THAT(error_of([&] { make_task(options("base: laptop\nheads: 3\n")); }),
              HasSubstr("laptop.yaml"));
  EXPECT_THAT(error_of([&] { make_task(options("base: laptop\ndropout: 1\n")); }),
              HasSubstr("mine.yaml:2: dropout"));
}

// Loss and gradients of one batch, in any precision with the weights that fp32 draws.
std::vector<torch::Tensor> results(const Options& options) {
  auto drawn = options;
  drawn.precision = torch::kFloat32;
  torch::manual_seed(0);
  const auto start = make_task(drawn)->make_model()->parameters();
  const auto task = make_task(options);
  const auto model = task->make_model();
  {
    const torch::NoGradGuard no_grad;
    for (size_t i = 0; i < start.size(); ++i) model->parameters()[i].copy_(start[i]);
  }
  auto dataset = task->dataset("train");
  const auto batch = dataset.get_batch(std::vector<size_t>{5, 3, 400});
  const auto loss = task->loss(model->forward(batch.input), batch.target);
  loss.mean().backward();
  std::vector<torch::Tensor> all{loss.sum.detach()};
  for (const auto& parameter : model->parameters()) all.push_back(parameter.grad());
  return all;
}

double largest_error(const std::vector<torch::Tensor>& all, const std::vector<torch::Tensor>& of) {
  double largest = 0;
  for (size_t i = 0; i < of.size(); ++i) {
    const auto error = (all[i].to(torch::kDouble) - of[i].to(torch::kDouble)).norm();
    largest = std::max(largest, (error / of[i].norm()).item<double>());
  }
  return largest;
}

TEST_F(LanguageModelTest, ItsFastPartsChangeNothingButRounding) {
  const auto exact = results(options(small));
  const std::set<std::string, std::less<>> all{"loss",      "optimizer", "embedding",
                                               "attention", "norm",      "relu"};
  std::vector<Fast> several{{.parts = all}};
  for (const auto& part : all) several.push_back({.parts = {part}});
  for (const auto& fast : several) {
    auto faster = options(small);
    faster.fast = fast;
    EXPECT_LT(largest_error(results(faster), exact), 1e-13);
  }
}

TEST_F(LanguageModelTest, MultipliesInBf16) {
  const auto exact = results(options(small));
  auto bf16 = options(small);
  bf16.precision = torch::kFloat32;
  bf16.products = Products::bf16;
  const auto torchs = results(bf16);
  for (const auto& tensor : torchs) EXPECT_EQ(tensor.dtype(), torch::kFloat32);
  const double error = largest_error(torchs, exact);
  EXPECT_GT(error, 1e-4);  // it did round
  EXPECT_LT(error, 0.05);
  bf16.fast.parts = {"loss", "optimizer", "embedding", "attention", "norm", "relu"};
  EXPECT_LT(largest_error(results(bf16), exact), 2 * error);
}

TEST_F(LanguageModelTest, MultipliesInFp16) {
  const auto exact = results(options(small));
  auto fp16 = options(small);
  fp16.precision = torch::kFloat32;
  fp16.products = Products::fp16;
  const auto rounded = results(fp16);
  for (const auto& tensor : rounded) EXPECT_EQ(tensor.dtype(), torch::kFloat32);
  EXPECT_LT(largest_error(rounded, exact), 0.05);  // a ReLU near zero may turn
  // The decoder's bias is behind all of them; bf16, of three bits less, is beyond this bound.
  const double error = largest_error({rounded.back()}, {exact.back()});
  EXPECT_GT(error, 1e-5);  // it did round
  EXPECT_LT(error, 1e-3);
  fp16.fast.parts = {"norm"};
  EXPECT_THROW(make_task(fp16), Error);
}

/// Of a step on each rank's own batch, by name; which DistributedDataParallel left to the model.
std::map<std::string, torch::Tensor> averages(const Options& options, int rank, bool leaves_one) {
  torch::manual_seed(0);
  const auto task = make_task(options);
  const auto module = task->make_model();
  const distributed_utils::DistributedDataParallel<Model> model(module);
  EXPECT_EQ(model->bucket_indices().back() == std::vector<size_t>{0}, leaves_one);
  auto dataset = task->dataset("train");
  const auto batch = dataset.get_batch(std::vector<size_t>{5, size_t(rank), 400});
  task->loss(model->forward(batch.input), batch.target).mean().backward();
  std::map<std::string, torch::Tensor> all;
  for (const auto& item : module->named_parameters()) all[item.key()] = item.value().grad();
  return all;
}

TEST_F(LanguageModelTest, ItsFastEmbeddingAveragesTheRowsInUse) {
  ranks::run(2, [this] {
    const auto world = distributed_utils::setup();
    auto plain = options(small);
    plain.precision = torch::kFloat32;
    plain.batch_size = 3;
    auto fast = plain;
    fast.fast.parts = {"embedding"};
    const auto wanted = averages(plain, world.rank, false);
    for (const auto& [name, gradient] : averages(fast, world.rank, true)) {
      EXPECT_LT(largest_error({gradient}, {wanted.at(name)}), 1e-6) << name;
    }
  });
}

TEST_F(LanguageModelTest, KeepsTheSeedsNumbers) {
  Options options;
  options.config = folder_.write("mine.yaml", "base: seed\ncorpus_words: 5000\n").string();
  const auto model = make_task(options)->make_model();
  const auto parameters = model->named_parameters();
  EXPECT_EQ(parameters["embedding.weight"].sizes(), (std::vector<int64_t>{1802, 128}));
  EXPECT_EQ(parameters["layers.1.linear1.weight"].sizes(), (std::vector<int64_t>{2048, 128}));
  EXPECT_FALSE(parameters.contains("layers.2.linear1.weight"));
}

}  // namespace
}  // namespace tasks::language_model

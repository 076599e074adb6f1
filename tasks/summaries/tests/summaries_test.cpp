// The task as a trainer sees it.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include <numeric>
#include <set>

#include "clipped_adamw.hpp"
#include "data.hpp"
#include "distributed_utils/safetensors.hpp"
#include "errors.hpp"
#include "fingerprints.hpp"
#include "greedy.hpp"
#include "tasks/secret.hpp"
#include "tasks/task.hpp"
#include "temporary_folder.hpp"

namespace tasks::summaries {
namespace {

using testing::HasSubstr;

// Built-in data go to a cache of the test's own.
class SummariesTask : public testing::Test {
 protected:
  SummariesTask() { setenv("WORLDSIZE_CACHE", (folder.path() / "cache").c_str(), 1); }
  ~SummariesTask() override { unsetenv("WORLDSIZE_CACHE"); }

  Options options_of(const std::string& yaml) const {
    Options options;
    options.task = "summaries";
    options.config = folder.write("mine.yaml", "base: laptop\n" + yaml).string();
    options.precision = torch::kFloat64;
    return options;
  }
  std::shared_ptr<Task> secret_task(uint64_t seed) const {
    auto words = make_secret("summaries", seed, folder.path() / std::to_string(seed));
    words.insert(words.begin(), {"trainer", "--task", "summaries"});
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    return make_task(parse_options(static_cast<int>(arguments.size()), arguments.data()));
  }

  TemporaryFolder folder;
};

std::vector<size_t> first(size_t count) {
  std::vector<size_t> indices(count);
  std::iota(indices.begin(), indices.end(), size_t{0});
  return indices;
}

TEST_F(SummariesTask, KnowsItsFloor) {
  const auto task = make_task(options_of("documents: 400\n"));
  const auto baselines = task->baselines();
  ASSERT_EQ(baselines.size(), 2U);
  EXPECT_EQ(baselines[1].first, "entropy floor");
  EXPECT_NEAR(baselines[1].second, 0.3261, 5e-5);
  EXPECT_GT(baselines[0].second, 3);
  EXPECT_EQ(*task->dataset("train").size(), 400U);
  EXPECT_EQ(*task->dataset("test").size(), 20U);
  EXPECT_THAT(task->describe(Score(0.4, {{"accuracy", 0.75}})),
              testing::AllOf(HasSubstr("0.4000 nats a word"), HasSubstr("entropy floor 0.3261"),
                             HasSubstr("accuracy 0.75")));
}

TEST_F(SummariesTask, SaysHowToFixItsCache) {
  const auto options = options_of("documents: 40\n");
  make_task(options);
  const auto made = folder.path() / "cache" / "summaries-1-lead-40-0";
  std::filesystem::resize_file(made / "validation.jsonl", 50);
  EXPECT_THAT(error_of([&] { make_task(options); }),
              testing::AllOf(HasSubstr("validation.jsonl:1: "),
                             HasSubstr("delete the folder " + made.string())));
  std::filesystem::remove_all(made);
  EXPECT_EQ(*make_task(options)->dataset("validation").size(), 2U);
}

TEST_F(SummariesTask, HasNoFloorWhereWordsAreMissing) {
  EXPECT_EQ(make_task(options_of("documents: 40\nvocabulary_size: 300\n"))->baselines().size(), 1U);
  EXPECT_EQ(make_task(options_of("documents: 40\ntarget_length: 5\n"))->baselines().size(), 1U);
}

// Sums and counts of real words, by hand; a batch's are those of its parts.
TEST_F(SummariesTask, LosesPerRealWord) {
  const auto task = secret_task(1);
  torch::manual_seed(1);
  const auto model = task->make_model();
  model->eval();
  const torch::NoGradGuard no_grad;
  auto train = task->dataset("train");
  const auto batch = train.get_batch(first(7));
  const auto logits = model->forward(batch.input);
  const auto loss = task->loss(logits, batch.target);
  double nats = 0;
  int64_t words = 0, right = 0;
  const auto& target = batch.target.tensor();
  for (int64_t i = 0; i < target.size(0); ++i) {
    for (int64_t j = 0; j < target.size(1); ++j) {
      const auto word = target[i][j].item<int64_t>();
      if (word == kPad) continue;
      ++words;
      nats -= torch::log_softmax(logits[i][j], 0)[word].item<double>();
      right += logits[i][j].argmax().item<int64_t>() == word ? 1 : 0;
    }
  }
  EXPECT_LT(words, target.numel());
  EXPECT_EQ(loss.count, words);
  EXPECT_NEAR(loss.sum.item<double>(), nats, 1e-10);
  EXPECT_DOUBLE_EQ(task->score(loss.totals()).metric("accuracy"), double(right) / double(words));

  auto totals = task->no_totals(torch::kCPU);
  for (size_t i = 0; i < 7; ++i) {
    const auto one = train.get_batch({i});
    totals += task->loss(model->forward(one.input), one.target).totals();
  }
  EXPECT_TRUE(torch::allclose(totals, loss.totals()));
}

TEST_F(SummariesTask, LearnsAndWritesWhatItLearned) {
  const auto task =
      make_task(options_of("documents: 64\nwidth: 32\nlearning_rate: 1e-2\n"
                           "warm_up_steps: 5\nencoder_layers: 1\n"
                           "decoder_layers: 1\n"));
  torch::manual_seed(2);
  const auto model = task->make_model();
  const auto optimizer = task->make_optimizer(model->parameters());
  const auto schedule = task->make_schedule(*optimizer, 100);
  auto train = task->dataset("train");
  const auto batch = train.get_batch(first(8));
  for (int step = 0; step < 100; ++step) {
    optimizer->zero_grad();
    task->loss(model->forward(batch.input), batch.target).mean().backward();
    optimizer->step();
    schedule->step();
  }
  auto& transformer = dynamic_cast<EncoderDecoder&>(*model);
  const auto written = write_greedily(transformer, batch.input[0], 8);
  for (int64_t i = 0; i < 8; ++i) {
    const auto wanted = batch.target.tensor()[i].narrow(0, 0, 5);
    EXPECT_TRUE(torch::equal(torch::tensor(written[static_cast<size_t>(i)]), wanted)) << i;
  }
}

TEST_F(SummariesTask, RefusesWeightsWithoutT5) {
  EXPECT_THAT(error_of([&] { make_task(options_of("weights: a.safetensors\n")); }),
              HasSubstr("t5: true"));
  EXPECT_THAT(error_of([&] { make_task(options_of("salience: last\n")); }),
              HasSubstr("expected lead or count, got 'last'"));
  EXPECT_THAT(error_of([&] { make_task(options_of("heads: 5\n")); }),
              HasSubstr("not a multiple of the 5 heads"));
}

TEST_F(SummariesTask, StartsFromWeights) {
  const TransformerOptions small{.vocabulary = 500,
                                 .width = 8,
                                 .heads = 2,
                                 .head_width = 4,
                                 .feed_forward = 16,
                                 .encoder_layers = 1,
                                 .decoder_layers = 1,
                                 .t5 = true};
  torch::manual_seed(1);
  const EncoderDecoder t5(small);
  distributed_utils::StateDict tensors;
  for (const auto& item : t5.named_parameters()) tensors[item.key()] = item.value().detach();
  const auto file = folder.path() / "t5.safetensors";
  distributed_utils::save_file(tensors, file);
  const auto yaml =
      "documents: 40\nt5: true\nwidth: 8\nheads: 2\nfeed_forward: 16\n"
      "encoder_layers: 1\ndecoder_layers: 1\nweights: " +
      file.string() + "\n";
  const auto model = make_task(options_of(yaml))->make_model();
  for (const auto& item : model->named_parameters()) {
    EXPECT_TRUE(torch::equal(item.value(), tensors.at(item.key()).to(torch::kDouble)));
  }
  tensors["shared.weight"] = torch::zeros({100, 8});
  distributed_utils::save_file(tensors, file);
  EXPECT_THAT(error_of([&] { make_task(options_of(yaml)); }), HasSubstr("vocabulary_size: 100"));
}

TEST(ClippedAdamW, ShortensGradientsThatAreTooLong) {
  const auto parameter = [](std::vector<double> gradient) {
    auto made = torch::zeros({2}, torch::kDouble).requires_grad_();
    made.mutable_grad() = torch::tensor(gradient, torch::kDouble);
    return made;
  };
  for (const double longest : {0.0, 1.0, 100.0}) {
    const auto one = parameter({3, 0}), other = parameter({0, 4}), none = parameter({});
    none.mutable_grad().reset();
    ClippedAdamW optimizer({one, other, none}, torch::optim::AdamWOptions(0.1), longest);
    optimizer.step();
    const double factor = longest == 1 ? 1 / (5 + 1e-6) : 1;
    EXPECT_DOUBLE_EQ(one.grad()[0].item<double>(), 3 * factor);
    EXPECT_DOUBLE_EQ(other.grad()[1].item<double>(), 4 * factor);
    EXPECT_NEAR(one[0].item<double>(), -0.1, 1e-6);  // a step has been taken
  }
}

TEST(ClippedAdamW, ClipsWhatAClosureMakes) {
  auto parameter = torch::ones({1}, torch::kDouble).requires_grad_();
  ClippedAdamW optimizer({parameter}, torch::optim::AdamWOptions(0.1), 1);
  optimizer.step([&] {
    optimizer.zero_grad();
    auto loss = (parameter * 7).sum();
    loss.backward();
    return loss;
  });
  EXPECT_NEAR(parameter.grad()[0].item<double>(), 1, 1e-6);
}

// A judge knows samples by the bytes of their inputs, of both tensors.
TEST_F(SummariesTask, SecretsHaveSamplesThatAllDiffer) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const auto task = secret_task(seed);
    std::set<uint64_t> seen;
    std::set<size_t> sizes;
    size_t samples = 0;
    for (const auto& split : task->splits()) {
      auto dataset = task->dataset(split);
      const auto size = *dataset.size();
      EXPECT_TRUE(size % 2 != 0 && size % 3 != 0 && sizes.insert(size).second) << size;
      samples += size;
      const auto batch = dataset.get_batch(first(size));
      for (const auto hash : fingerprints_of(batch.input)) seen.insert(hash);
      EXPECT_LT(batch.target.count(), batch.target.tensor().numel());
    }
    EXPECT_EQ(seen.size(), samples) << "seed " << seed;
  }
}

TEST_F(SummariesTask, SamplesAreTheSameInAnyBatch) {
  const auto task = secret_task(3);
  auto train = task->dataset("train");
  const auto all = fingerprints_of(train.get_batch(first(9)).input);
  ASSERT_EQ(all.size(), 9U);
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(fingerprints_of(train.get_batch({i}).input).at(0), all[i]);
  }
  // What a decoder is told is part of it.
  auto batch = train.get_batch({0});
  const Input other{batch.input[0], batch.input[1] + 1};
  EXPECT_NE(fingerprints_of(other).at(0), all[0]);
}

TEST_F(SummariesTask, SecretsAreTheSameForTheSameSeed) {
  const auto read = [&](const std::filesystem::path& place, uint64_t seed) {
    make_secret("summaries", seed, place);
    std::ifstream stream(place / "data" / "train.jsonl");
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  EXPECT_EQ(read(folder.path() / "a", 7), read(folder.path() / "b", 7));
  EXPECT_NE(read(folder.path() / "a", 7), read(folder.path() / "c", 8));
}

}  // namespace
}  // namespace tasks::summaries

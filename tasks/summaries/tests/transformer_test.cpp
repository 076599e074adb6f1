// The model against one written out in Python, in both styles.
#include "transformer.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "distributed_utils/safetensors.hpp"
#include "errors.hpp"
#include "oracle.hpp"
#include "temporary_folder.hpp"
#include "weights.hpp"

namespace tasks::summaries {
namespace {

using distributed_utils::StateDict;
using testing::HasSubstr;

// The sizes that the script has.
TransformerOptions twin_options(bool t5) {
  return {.vocabulary = 23,
          .width = 12,
          .heads = 3,
          .head_width = 5,
          .feed_forward = 17,
          .encoder_layers = 2,
          .decoder_layers = 2,
          .longest = 150,
          .t5 = t5};
}

// Models are made in fp64, as a task makes them for --precision fp64.
class InDoubles {
 public:
  InDoubles() { torch::set_default_dtype(caffe2::TypeMeta::Make<double>()); }
  ~InDoubles() { torch::set_default_dtype(caffe2::TypeMeta::Make<float>()); }
};

struct Twin {
  TemporaryFolder folder;
  std::filesystem::path everything = folder.path() / "everything.safetensors";
  std::filesystem::path weights = folder.path() / "t5.safetensors";

  // False without a Python that has torch.
  bool made(bool t5) const {
    return oracle::json("../../../tasks/summaries/tests/transformer_twin.py",
                        {t5 ? "t5" : "own", everything.string(), weights.string()})
        .has_value();
  }
};

double distance(const torch::Tensor& one, const torch::Tensor& other) {
  return ((one - other).norm() / other.norm()).item<double>();
}

void expect_same_outputs_and_gradients(EncoderDecoder& model, const StateDict& twin) {
  const auto logits = model.forward({twin.at("documents"), twin.at("told")});
  EXPECT_LT(distance(logits, twin.at("logits")), 1e-13);
  const auto loss = torch::nn::functional::cross_entropy(
      logits.flatten(0, 1), twin.at("targets").flatten(),
      torch::nn::functional::CrossEntropyFuncOptions().ignore_index(kPad).reduction(torch::kSum));
  EXPECT_LT(distance(loss, twin.at("loss")), 1e-13);
  loss.backward();
  size_t gradients = 0;
  for (const auto& item : model.named_parameters()) {
    const auto& expected = twin.at("gradient:" + item.key());
    EXPECT_LT(distance(item.value().grad(), expected), 1e-11) << item.key();
    ++gradients;
  }
  EXPECT_EQ(2 * gradients + 5, twin.size());
}

TEST(EncoderDecoder, AgreesWithPython) {
  const InDoubles doubles;
  const Twin twin;
  if (!twin.made(false)) GTEST_SKIP() << oracle::kMissing;
  const auto everything = distributed_utils::load_file(twin.everything);
  EncoderDecoder model(twin_options(false));
  {
    const torch::NoGradGuard no_grad;
    for (auto& item : model.named_parameters()) {
      item.value().copy_(everything.at("weight:" + item.key()));
    }
  }
  expect_same_outputs_and_gradients(model, everything);
}

TEST(EncoderDecoder, WithT5sWeightsAgreesWithPython) {
  const InDoubles doubles;
  const Twin twin;
  if (!twin.made(true)) GTEST_SKIP() << oracle::kMissing;
  EncoderDecoder model(twin_options(true));
  const Weights weights(twin.weights);
  EXPECT_EQ(weights.vocabulary(), 23);
  weights.load_into(model);
  expect_same_outputs_and_gradients(model, distributed_utils::load_file(twin.everything));
}

// Hugging Face's t5-base has 222,903,552 (its model card's 220 million).
TEST(EncoderDecoder, OfT5BasesSizesHasItsParameters) {
  const TransformerOptions base{.vocabulary = 32128,
                                .width = 768,
                                .heads = 12,
                                .head_width = 64,
                                .feed_forward = 3072,
                                .encoder_layers = 1,
                                .decoder_layers = 1,
                                .t5 = true};
  const EncoderDecoder model(base);
  int64_t count = 0, each = 0;
  for (const auto& item : model.named_parameters()) {
    count += item.value().numel();
    if (item.key().find("block") != std::string::npos &&
        item.key().find("relative") == std::string::npos) {
      each += item.value().numel();
    }
  }
  EXPECT_EQ(count + 11 * each, 222'903'552);
}

TEST(EncoderDecoder, SeesNoLaterWordAndNoPadding) {
  torch::manual_seed(3);
  for (const bool t5 : {false, true}) {
    const InDoubles doubles;
    EncoderDecoder model(twin_options(t5));
    const auto documents = torch::randint(3, 23, {2, 9});
    documents[1].slice(0, 4) = kPad;
    const auto told = torch::randint(3, 23, {2, 6});
    const auto logits = model.forward({documents, told});
    const auto later = told.clone();
    later.slice(1, 4) = 3;
    const auto changed = model.forward({documents, later});
    EXPECT_TRUE(torch::allclose(changed.slice(1, 0, 4), logits.slice(1, 0, 4)));
    EXPECT_FALSE(torch::allclose(changed.slice(1, 4), logits.slice(1, 4)));
    const auto shorter = model.forward({documents.slice(1, 0, 4), told});
    EXPECT_TRUE(torch::allclose(shorter[1], logits[1]));
    EXPECT_FALSE(torch::allclose(shorter[0], logits[0]));
  }
}

void load(const StateDict& tensors, const TransformerOptions& options) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "t5.safetensors";
  distributed_utils::save_file(tensors, file);
  EncoderDecoder model(options);
  Weights(file).load_into(model);
}

std::string load_error(const StateDict& tensors, const TransformerOptions& options) {
  return error_of([&] { load(tensors, options); });
}

TEST(Weights, ThatAreOfAnotherModelAreRefused) {
  const auto options = twin_options(true);
  StateDict good;
  const EncoderDecoder model(options);
  for (const auto& item : model.named_parameters()) good[item.key()] = item.value().detach();
  EXPECT_NO_THROW(load(good, options));

  auto without = good;
  without.erase("decoder.block.1.layer.1.EncDecAttention.k.weight");
  EXPECT_THAT(load_error(without, options),
              testing::AllOf(HasSubstr("t5.safetensors"),
                             HasSubstr("no tensor decoder.block.1.layer.1.EncDecAttention.k")));
  auto no_embedding = good;
  no_embedding.erase("shared.weight");
  EXPECT_THAT(load_error(no_embedding, options), HasSubstr("no tensor shared.weight"));
  auto wider = options;
  wider.feed_forward = 18;
  EXPECT_THAT(load_error(good, wider), HasSubstr("[17, 12] where the configuration has [18, 12]"));
  auto more = good;
  more["decoder.block.2.layer.0.layer_norm.weight"] = torch::ones({12});
  EXPECT_THAT(load_error(more, options), HasSubstr("which the model does not have"));
  auto untied = good;
  untied["lm_head.weight"] = torch::zeros({23, 12});
  EXPECT_THAT(load_error(untied, options), HasSubstr("lm_head.weight differs"));
}

TEST(Weights, OfAnEarlyT5HaveABiasThatNobodyUses) {
  const auto options = twin_options(true);
  StateDict good;
  const EncoderDecoder model(options);
  for (const auto& item : model.named_parameters()) good[item.key()] = item.value().detach();
  good["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"] =
      torch::zeros({32, 3});
  EXPECT_NO_THROW(load(good, options));
}

}  // namespace
}  // namespace tasks::summaries

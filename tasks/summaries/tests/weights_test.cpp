// Weights of a T5 in damaged files.
#include "weights.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <fstream>
#include <iterator>
#include <random>

#include "temporary_folder.hpp"

namespace tasks::summaries {
namespace {

using testing::HasSubstr;

/// A file of a tiny model, damaged again and again.
class DamagedWeights : public testing::Test {
 protected:
  DamagedWeights() : model_(options()) {
    distributed_utils::StateDict tensors;
    for (const auto& item : model_.named_parameters()) tensors[item.key()] = item.value().detach();
    distributed_utils::save_file(tensors, file_);
    std::ifstream stream(file_, std::ios::binary);
    whole_.assign(std::istreambuf_iterator<char>(stream), {});
    for (size_t i = 0; i < 8; ++i) {
      header_ |= size_t{static_cast<uint8_t>(whole_[i])} << (8 * i);
    }
    header_ += 8;
  }

  static TransformerOptions options() {
    return {.vocabulary = 5,
            .width = 2,
            .heads = 1,
            .head_width = 2,
            .feed_forward = 3,
            .encoder_layers = 1,
            .decoder_layers = 1,
            .longest = 4,
            .t5 = true};
  }

  /// Whether the file is refused, with its name.
  bool refused(const std::string& bytes) {
    std::filesystem::remove(file_);
    folder_.write("t5.safetensors", bytes);
    try {
      Weights(file_).load_into(loaded_);
      return false;
    } catch (const std::exception& error) {
      EXPECT_THAT(error.what(), HasSubstr(file_.string()));
      return true;
    }
  }
  bool loaded_the_same() const {
    const auto wanted = model_.parameters(), found = loaded_.parameters();
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (!torch::equal(wanted[i], found[i])) return false;
    }
    return true;
  }

  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_.path() / "t5.safetensors";
  EncoderDecoder model_, loaded_{options()};
  std::string whole_;
  size_t header_ = 0;
  std::mt19937_64 random_{3};
};

TEST_F(DamagedWeights, ThatAreCutAreAlwaysNamed) {
  for (int i = 0; i < 400; ++i) EXPECT_TRUE(refused(whole_.substr(0, random_() % whole_.size())));
  EXPECT_TRUE(refused(whole_.substr(0, whole_.size() - 1)));
  EXPECT_TRUE(refused(whole_ + "x"));
  EXPECT_FALSE(refused(whole_));
}

// The header is text that says all there is to say: what is read all the same, is the same.
TEST_F(DamagedWeights, WithAnotherHeaderAreNamedOrTheSame) {
  int named = 0;
  for (int i = 0; i < 1000; ++i) {
    auto other = whole_;
    const auto at = random_() % header_;
    other[at] = static_cast<char>(i % 2 == 0 ? random_() : '0' + random_() % 10);
    if (refused(other)) {
      ++named;
    } else {
      EXPECT_TRUE(loaded_the_same()) << other.substr(at < 20 ? 8 : at - 12, 40);
    }
  }
  EXPECT_GT(named, 700);
}

}  // namespace
}  // namespace tasks::summaries

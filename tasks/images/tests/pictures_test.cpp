// Files as samples: what is random about them, and what is not.
#include "pictures.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "errors.hpp"
#include "jpeg.hpp"
#include "tasks/progress.hpp"
#include "temporary_folder.hpp"

namespace tasks::images {
namespace {

at::Tensor noise(int64_t height, int64_t width, uint64_t seed) {
  auto picture = torch::empty({height, width, 3}, torch::kByte);
  KeyedRandom random(seed, 0, 0);
  for (int64_t i = 0; i < picture.numel(); ++i) {
    picture.mutable_data_ptr<uint8_t>()[i] = static_cast<uint8_t>(random.below(256));
  }
  return picture;
}

class PicturesTest : public testing::Test {
 protected:
  PicturesTest() {
    for (uint64_t i = 0; i < 6; ++i) {
      const auto file = folder_.path() / (std::to_string(i) + ".JPEG");
      write_jpeg(file, noise(30, 40, i), 95);
      pictures_.push_back({file, static_cast<int64_t>(i % 3)});
    }
    enter_epoch(0);
  }

  static void enter_epoch(int64_t epoch) {
    Options options;
    options.batch_size = 1;
    options.epochs = 10;
    Progress(options, 1).resume(epoch);
  }

  Batch fetch(const std::vector<size_t>& indices, const PicturesOptions& options) const {
    return make_source(pictures_, options)->fetch(indices);
  }

  TemporaryFolder folder_;
  std::vector<Picture> pictures_;
  PicturesOptions cropped_{.view = {.side = 16, .smallest_crop = 0.2, .flip = 0.5},
                           .training = true,
                           .seed = 5,
                           .type = torch::kDouble};
};

TEST_F(PicturesTest, AreNormalisedAsImageNetIs) {
  const auto batch = fetch({4, 1}, {.view = {.side = 16}, .type = torch::kDouble});
  EXPECT_EQ(batch.input[0].sizes(), (std::vector<int64_t>{2, 3, 16, 16}));
  EXPECT_EQ(batch.target.tensor()[0].item<int64_t>(), 1);
  const auto pixels = at::_upsample_bilinear2d_aa(read_jpeg(pictures_[4].file)
                                                      .permute({2, 0, 1})
                                                      .unsqueeze(0)
                                                      .contiguous(at::MemoryFormat::ChannelsLast),
                                                  {16, 16}, false);
  const auto green = (pixels[0][1].to(torch::kDouble) / 255 - 0.456) / 0.224;
  EXPECT_TRUE(torch::allclose(batch.input[0][0][1], green, 0, 1e-12));
}

TEST_F(PicturesTest, AreTheSameWithOneThreadAndWithFour) {
  std::vector<at::Tensor> seen;
  for (const int threads : {1, 4}) {
    const int before = at::get_num_threads();
    at::set_num_threads(threads);
    seen.push_back(fetch({0, 1, 2, 3, 4, 5}, cropped_).input[0]);
    at::set_num_threads(before);
  }
  EXPECT_TRUE(torch::equal(seen[0], seen[1]));
}

// Not on what came before, nor on the batch, the rank or the order.
TEST_F(PicturesTest, DependOnSeedEpochAndIndexAlone) {
  const auto all = fetch({0, 1, 2, 3, 4, 5}, cropped_).input[0];
  for (size_t i = 6; i-- > 0;) {
    EXPECT_TRUE(torch::equal(fetch({i}, cropped_).input[0][0], all[static_cast<int64_t>(i)])) << i;
  }
  enter_epoch(1);
  const auto later = fetch({0, 1, 2, 3, 4, 5}, cropped_).input[0];
  for (int64_t i = 0; i < 6; ++i) EXPECT_FALSE(torch::equal(later[i], all[i])) << i;
  enter_epoch(0);
  EXPECT_TRUE(torch::equal(fetch({3}, cropped_).input[0][0], all[3]));
  cropped_.seed = 6;
  EXPECT_FALSE(torch::equal(fetch({3}, cropped_).input[0][0], all[3]));
}

TEST_F(PicturesTest, AreNeverRandomInEvaluation) {
  cropped_.training = false;
  const auto all = fetch({0, 1, 2}, cropped_).input[0];
  enter_epoch(1);
  EXPECT_TRUE(torch::equal(fetch({0, 1, 2}, cropped_).input[0], all));
}

TEST_F(PicturesTest, LieChannelsLastOnRequest) {
  const auto plain = fetch({0, 1}, cropped_).input[0];
  cropped_.channels_last = true;
  const auto last = fetch({0, 1}, cropped_).input[0];
  EXPECT_TRUE(torch::equal(plain, last));
  EXPECT_TRUE(plain.is_contiguous());
  EXPECT_TRUE(last.is_contiguous(at::MemoryFormat::ChannelsLast));
}

TEST_F(PicturesTest, AreDecodedOnceOnRequest) {
  const auto later = [&](const std::shared_ptr<const Dataset::Source>& source) {
    enter_epoch(1);
    auto shown = source->fetch({5, 0}).input[0];
    enter_epoch(0);
    return shown;
  };
  const auto expected = later(make_source(pictures_, cropped_));
  cropped_.keep_decoded = true;
  const auto source = make_source(pictures_, cropped_);
  source->fetch({0, 5});
  for (const auto& picture : pictures_) std::filesystem::remove(picture.file);
  EXPECT_TRUE(torch::equal(later(source), expected));
  EXPECT_THAT(error_of([&] { source->fetch({1}); }), testing::HasSubstr("1.JPEG"));
}

TEST_F(PicturesTest, ADamagedFileIsNamedWhicheverThreadReadsIt) {
  const auto whole = encode_jpeg(noise(30, 40, 1), 95);
  folder_.write("4.JPEG", whole.substr(0, whole.size() / 2));
  EXPECT_THAT(error_of([&] {
                fetch({0, 1, 2, 3, 4, 5}, cropped_);
              }),
              testing::AllOf(testing::HasSubstr("4.JPEG"), testing::HasSubstr("damaged")));
}

TEST(Views, LieInsideAndHaveTheSharesAndShapesThatAreSaid) {
  const ViewOptions options{.side = 16, .smallest_crop = 0.2, .flip = 0.25};
  int flipped = 0;
  double least = 1, most = 0;
  for (uint64_t i = 0; i < 4000; ++i) {
    KeyedRandom random(1, 2, i);
    const auto view = random_view(300, 400, options, random);
    EXPECT_TRUE(view.left >= 0 && view.top >= 0 && view.left + view.width <= 300 &&
                view.top + view.height <= 400);
    const double share = double(view.width * view.height) / (300 * 400);
    const double ratio = double(view.width) / double(view.height);
    EXPECT_TRUE(ratio > 0.73 && ratio < 1.36) << ratio;
    least = std::min(least, share);
    most = std::max(most, share);
    flipped += view.flipped ? 1 : 0;
  }
  EXPECT_NEAR(least, 0.2, 0.01);
  EXPECT_GT(most, 0.95);
  EXPECT_NEAR(flipped / 4000.0, 0.25, 0.03);
}

TEST(Views, OfAPictureTooWideAreItsMiddle) {
  KeyedRandom random(1, 2, 3);
  const auto view = random_view(1000, 30, {.side = 16, .smallest_crop = 0.9}, random);
  EXPECT_EQ(view.width, 40);
  EXPECT_EQ(view.height, 30);
  EXPECT_EQ(view.left, 480);
}

TEST(Views, AreMirroredLeftToRight) {
  const auto picture = noise(8, 8, 1);
  auto pixels = torch::empty({8, 8, 3}, torch::kByte);
  show(picture, {0, 0, 8, 8, true}, pixels);
  EXPECT_TRUE(torch::equal(pixels, picture.flip(1)));
  show(picture, {0, 0, 8, 8, false}, pixels);
  EXPECT_TRUE(torch::equal(pixels, picture));
}

}  // namespace
}  // namespace tasks::images

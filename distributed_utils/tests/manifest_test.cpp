#include "checkpoint/manifest.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "distributed_utils/error.hpp"
#include "files/sha256.hpp"

namespace distributed_utils::detail {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

Manifest example() {
  return {.step = 1200,
          .world_size = 3,
          .scalars = {{"epoch", 7},
                      {"whole", 4.0},
                      {"best_loss", 0.1 + 0.2},
                      {"tiny", std::numeric_limits<double>::denorm_min()},
                      {"none yet", std::numeric_limits<double>::infinity()},
                      {"lowest", -std::numeric_limits<double>::infinity()},
                      {"large", std::numeric_limits<int64_t>::min()},
                      {"name", "a \"quoted\" \n line"}},
          .files = {{.name = "model.safetensors",
                     .size = 12,
                     .sha256 = std::string(64, 'a'),
                     .tensors = {{.file = "model.safetensors",
                                  .name = "weight",
                                  .dtype = "F32",
                                  .global_shape = {2, 3},
                                  .offset = {0, 0},
                                  .local_shape = {2, 3}}}}},
          .bucket_indices = {{2, 1}, {0}},
          .sha256 = {}};
}

TEST(Manifest, ComesBackAsItWas) {
  const std::string text = to_text(example());
  const Manifest back = manifest_from_text(text, "manifest.json");
  EXPECT_EQ(back.step, 1200);
  EXPECT_EQ(back.world_size, 3);
  EXPECT_EQ(back.scalars, example().scalars);
  EXPECT_EQ(back.bucket_indices, example().bucket_indices);
  ASSERT_EQ(back.files.size(), 1U);
  EXPECT_EQ(back.files[0].size, 12U);
  ASSERT_EQ(back.files[0].tensors.size(), 1U);
  EXPECT_EQ(back.files[0].tensors[0].global_shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(to_text(back), text);
}

TEST(Manifest, NoticesEachFlippedBitAndEachTruncation) {
  const std::string good = to_text(example());
  for (size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string text = good;
      text[at] = static_cast<char>(text[at] ^ (1 << bit));
      EXPECT_THROW(manifest_from_text(text, "manifest.json"), Error) << at << ", bit " << bit;
    }
    EXPECT_THROW(manifest_from_text(good.substr(0, at), "manifest.json"), Error) << at;
  }
  EXPECT_THROW(manifest_from_text(good + "\n", "manifest.json"), Error);
}

TEST(Manifest, RefusesAFormatOfTheFuture) {
  std::string text = to_text(example());
  text.replace(text.find("\"format\": 1"), 11, "\"format\": 2");
  const size_t end = text.find(",\n \"sha256\": \"", text.find("\"world_size\""));
  text = text.substr(0, end) + ",\n \"sha256\": \"" + sha256(text.substr(0, end)) + "\"\n}\n";
  EXPECT_THAT([&] { manifest_from_text(text, "manifest.json"); },
              ThrowsMessage<Error>(HasSubstr("manifest.json: has format 2")));
}

}  // namespace
}  // namespace distributed_utils::detail

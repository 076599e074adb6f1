// JPEG files, whole and damaged.
#include "jpeg.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "errors.hpp"
#include "folders.hpp"
#include "tasks/keyed_random.hpp"
#include "temporary_folder.hpp"

namespace tasks::images {
namespace {

using testing::AllOf;
using testing::HasSubstr;

at::Tensor some_picture(int64_t height, int64_t width) {
  const auto row = torch::arange(height, torch::kDouble).unsqueeze(1) / double(height);
  const auto column = torch::arange(width, torch::kDouble).unsqueeze(0) / double(width);
  const auto plane = (row * 3).sin() + (column * 5).cos();
  return (torch::stack({plane, plane * 0.7, row + column}, 2) * 60 + 90).to(torch::kByte);
}

std::string some_file() { return encode_jpeg(some_picture(40, 56), 90); }

TEST(Jpeg, ComesBackAlmostAsItWas) {
  const auto picture = some_picture(40, 56);
  const auto back = decode_jpeg(encode_jpeg(picture, 95), "picture");
  EXPECT_EQ(back.sizes(), picture.sizes());
  EXPECT_LT((back.to(torch::kInt) - picture.to(torch::kInt)).abs().max().item<int>(), 12);
}

TEST(Jpeg, OfGreyHasThreeEqualColours) {
  const auto grey = torch::full({8, 8, 3}, 100, torch::kByte);
  EXPECT_TRUE(torch::equal(decode_jpeg(encode_jpeg(grey, 95), "grey"), grey));
}

// The outcome of decoding: a picture, or an error that names the file.
bool is_error(const std::string& bytes) {
  try {
    return decode_jpeg(bytes, "damaged.JPEG").numel() == 0;
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("damaged.JPEG: "));
    return true;
  }
}

TEST(Jpeg, CutAnywhereIsAnError) {
  const auto whole = some_file();
  EXPECT_FALSE(is_error(whole));
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(is_error(whole.substr(0, size))) << size << " of " << whole.size() << " bytes";
  }
}

TEST(Jpeg, WithAnotherStartIsAnError) {
  for (size_t at = 0; at < 3; ++at) {
    auto file = some_file();
    file[at] = static_cast<char>(~file[at]);
    EXPECT_TRUE(is_error(file)) << at;
  }
  EXPECT_TRUE(is_error(std::string(1000, '\0')));
  EXPECT_TRUE(is_error("a text, and no picture"));
}

// Where the frame's header says another size than the data have.
TEST(Jpeg, WithAnotherSizeInItsHeaderIsAnError) {
  const auto whole = some_file();
  const size_t frame = whole.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  for (const char byte : {'\x01', '\x40', '\xff'}) {
    auto taller = whole;
    taller[frame + 5] = byte;  // the high byte of the height
    EXPECT_TRUE(is_error(taller)) << int(byte);
  }
  auto huge = whole;
  for (size_t i = 5; i < 9; ++i) huge[frame + i] = '\xfe';
  EXPECT_THAT(error_of([&] { decode_jpeg(huge, "huge.JPEG"); }),
              AllOf(HasSubstr("huge.JPEG"), HasSubstr("65278 x 65278")));
}

// What a few wrong bytes do to the payload no decoder can always tell; it neither crashes nor
// hangs.
TEST(Jpeg, WithRandomDamageGivesAPictureOrAnError) {
  const auto whole = some_file();
  int errors = 0;
  for (uint64_t trial = 0; trial < 3000; ++trial) {
    KeyedRandom random(trial, 0, 0);
    auto file = whole;
    const auto damages = 1 + random.below(8);
    for (int64_t i = 0; i < damages; ++i) {
      // Half of all trials hit the headers alone.
      const auto reach = trial % 2 == 0 ? 600 : static_cast<int64_t>(file.size());
      const auto at = std::min(random.below(reach), static_cast<int64_t>(file.size()) - 1);
      file[static_cast<size_t>(at)] = static_cast<char>(random.bits());
    }
    if (is_error(file)) ++errors;
  }
  EXPECT_GT(errors, 1000);
  EXPECT_LT(errors, 2900);
  // Damaged files leave nothing behind.
  EXPECT_FALSE(is_error(whole));
}

TEST(Jpeg, FilesThatAreMissingEmptyOrNoneAreNamed) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { read_jpeg(folder.path() / "none.JPEG"); }), HasSubstr("none.JPEG: "));
  EXPECT_THAT(error_of([&] { read_jpeg(folder.write("empty.JPEG", "")); }),
              AllOf(HasSubstr("empty.JPEG"), HasSubstr("empty")));
  EXPECT_THAT(error_of([&] { read_jpeg(folder.write("text.JPEG", "text")); }),
              AllOf(HasSubstr("text.JPEG"), HasSubstr("not a JPEG")));
  EXPECT_THAT(error_of([&] { read_jpeg(folder.path()); }), HasSubstr(folder.path().string()));
}

class FoldersTest : public testing::Test {
 protected:
  void add(const std::string& file) const {
    std::filesystem::create_directories((folder_.path() / file).parent_path());
    folder_.write(file, "never read");
  }
  std::string error() const {
    return error_of([&] { find_pictures(folder_.path()); });
  }

  TemporaryFolder folder_;
};

TEST_F(FoldersTest, AreSortedAndOnlyPicturesCount) {
  for (const char* file : {"train/b/2.JPEG", "train/b/1.jpg", "train/a/9.JPEG", "train/a/notes.txt",
                           "train/list.csv", "val/b/3.JPEG"}) {
    add(file);
  }
  const auto found = find_pictures(folder_.path());
  EXPECT_EQ(found.classes, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(found.train.size(), 3);
  EXPECT_EQ(found.train[0].file.filename(), "9.JPEG");
  EXPECT_EQ(found.train[1].file.filename(), "1.jpg");
  EXPECT_EQ(found.train[2].label, 1);
  EXPECT_EQ(found.validation[0].label, 1);
  // ImageWoof has no test pictures of its own.
  EXPECT_EQ(found.test[0].file, found.validation[0].file);
}

TEST_F(FoldersTest, ThatLackSomethingSayWhat) {
  EXPECT_THAT(error(), AllOf(HasSubstr("/train"), HasSubstr("--data")));
  add("train/a/1.JPEG");
  EXPECT_THAT(error(), HasSubstr("/val"));
  add("val/a/notes.txt");
  EXPECT_THAT(error(), AllOf(HasSubstr("/val"), HasSubstr("no pictures")));
  add("val/c/1.JPEG");
  EXPECT_THAT(error(), AllOf(HasSubstr("val/c"), HasSubstr("no class")));
}

}  // namespace
}  // namespace tasks::images

// What kind of file a program left, told by its bytes.
#include "replay/file_format.hpp"

#include <gmock/gmock.h>

#include <cstring>

#include "support/files.hpp"

namespace replay {
namespace {

// Two tensors of 8 and 4 bytes.
const std::string kHeader = R"({"__metadata__":{"format":"pt"},)"
                            R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                            R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})";

std::string with_length(const std::string& header) {
  const uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header;
}

class FileFormat : public ::testing::Test {
 protected:
  // The name says nothing.
  std::string format(const std::string& bytes) const {
    const auto file = folder_.path() / "model.safetensors";
    checker::write_file(file, bytes);
    return format_of(file);
  }

  const std::string whole_ = with_length(kHeader) + std::string(12, 'x');
  checker::TemporaryFolder folder_;
};

TEST_F(FileFormat, AWholeSafetensorsFileIsOne) {
  EXPECT_EQ(format(whole_), "safetensors");
  EXPECT_EQ(format(with_length("{}   ")), "safetensors");  // writers pad headers with spaces
}

TEST_F(FileFormat, AZipArchiveIsAnArchiveWhateverItsName) {
  EXPECT_EQ(format("PK\x03\x04" + std::string(100, 'x')), "archive");
  EXPECT_EQ(format("PK"), "other");
}

TEST_F(FileFormat, AnEmptyFileIsEmpty) { EXPECT_EQ(format(""), "empty"); }

TEST_F(FileFormat, APartOfASafetensorsFileIsCut) {
  const auto header_end = whole_.size() - 12;
  for (const size_t size : {9UL, header_end - 1, header_end, whole_.size() - 1})
    EXPECT_EQ(format(whole_.substr(0, size)), "cut") << size;
}

TEST_F(FileFormat, WhatNoReaderTakesIsOther) {
  EXPECT_EQ(format("a text that anybody may write"), "other");
  EXPECT_EQ(format(whole_.substr(0, 8)), "other");  // a length alone may be anything
  EXPECT_EQ(format(whole_ + "x"), "other");
  EXPECT_EQ(format(with_length("{\"a\": }") + std::string(12, 'x')), "other");
  EXPECT_EQ(format(with_length(R"({"a":{"data_offsets":[4,12]}})") + std::string(12, 'x')),
            "other");  // a gap
  EXPECT_EQ(format(with_length(R"({"a":{"data_offsets":[0,-12]}})") + std::string(12, 'x')),
            "other");
  EXPECT_EQ(format(with_length(R"({"a":{"dtype":"F32"}})") + std::string(12, 'x')), "other");
  EXPECT_EQ(format(std::string(8, '\xff') + "{}"), "other");  // a length that nobody allocates
}

TEST_F(FileFormat, WhatIsNoFileIsOther) {
  EXPECT_STREQ(format_of(folder_.path()), "other");
  EXPECT_STREQ(format_of(folder_.path() / "nothing"), "other");
}

}  // namespace
}  // namespace replay

#include "files/sha256.hpp"

#include <gtest/gtest.h>

namespace distributed_utils::detail {
namespace {

class Hash : public testing::TestWithParam<Sha256Blocks> {
 protected:
  void SetUp() override {
    if (GetParam() == nullptr) GTEST_SKIP() << "this processor has no SHA instructions";
  }
  static std::string of(const std::string& text) {
    Sha256 hash(GetParam());
    hash.update(text.data(), text.size());
    return hash.hex();
  }
};
INSTANTIATE_TEST_SUITE_P(Sha256, Hash, testing::Values(sha256_blocks, sha256_blocks_x86()),
                         [](const auto& of) { return of.index == 0 ? "Portable" : "X86"; });

// The examples of FIPS 180-4 (csrc.nist.gov/projects/cryptographic-standards-and-guidelines).
TEST_P(Hash, GivesTheKnownHashes) {
  EXPECT_EQ(of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(of("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
               "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(of(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_P(Hash, DoesNotMindHowTheBytesCome) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 7);
  for (size_t piece = 1; piece < 200; ++piece) {
    Sha256 hash(GetParam());
    for (size_t at = 0; at < text.size(); at += piece) {
      hash.update(text.data() + at, std::min(piece, text.size() - at));
    }
    EXPECT_EQ(hash.hex(), of(text)) << piece;
  }
}

}  // namespace
}  // namespace distributed_utils::detail

#include "sha256.hpp"

#include <gtest/gtest.h>

namespace distributed_utils::detail {
namespace {

// The examples of FIPS 180-4 (csrc.nist.gov/projects/cryptographic-standards-and-guidelines).
TEST(Sha256, GivesTheKnownHashes) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
                   "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotMindHowTheBytesCome) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 7);
  for (size_t piece = 1; piece < 200; ++piece) {
    Sha256 hash;
    for (size_t at = 0; at < text.size(); at += piece) {
      hash.update(text.data() + at, std::min(piece, text.size() - at));
    }
    EXPECT_EQ(hash.hex(), sha256(text)) << piece;
  }
}

}  // namespace
}  // namespace distributed_utils::detail

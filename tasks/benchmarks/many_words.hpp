#pragma once
/// A text of as many different words as the seed's, which the built-in language does not have.
#include <cstdint>
#include <filesystem>

namespace many_words {

/// Writes train.txt, valid.txt and test.txt into a folder, for --data: with <unk> and <eos> their
/// vocabulary is `vocabulary` words. Frequencies follow Zipf's law, as those of English do. The
/// same every time.
void write(const std::filesystem::path& folder, int64_t vocabulary);

}  // namespace many_words

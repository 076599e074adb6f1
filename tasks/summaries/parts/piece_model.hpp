#pragma once
/// Whether the bytes of a SentencePiece model are whole. The library itself takes a file that was
/// cut between two of its pieces for a model with fewer, and reads beyond the tables of a damaged
/// one.
#include <string>
#include <string_view>

namespace tasks::summaries {

/// What is wrong with the bytes of a .model file; empty if nothing is. The file is a protocol
/// buffer: https://github.com/google/sentencepiece/blob/v0.2.0/src/sentencepiece_model.proto.
std::string what_is_wrong(std::string_view model);

}  // namespace tasks::summaries

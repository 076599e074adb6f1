#pragma once
/// Summaries as a trained model writes them, and how good they are.
#include <cstdint>
#include <vector>

#include "data.hpp"
#include "rouge.hpp"
#include "transformer.hpp"

namespace tasks::summaries {

/// A summary of each document, int64 [documents, source]: word by word the most likely next one,
/// until kEnd, which is left out, or until `longest` words are written. The model is put into
/// evaluation mode.
std::vector<std::vector<int64_t>> write_greedily(EncoderDecoder& model,
                                                 const torch::Tensor& documents, int64_t longest);

/// The mean ROUGE of such summaries of all of a split's documents, written in batches. A word that
/// the vocabulary lacks is never one that was wanted.
Rouge rouge_of_greedy(EncoderDecoder& model, const Pairs& pairs, size_t batch_size);

}  // namespace tasks::summaries

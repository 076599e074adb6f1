#include "data.hpp"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include "corpus/corpus.hpp"
#include "text.hpp"
#include "vocabulary.hpp"

namespace tasks::language_model {
namespace {

at::Tensor to_tensor(const std::vector<int32_t>& ids) { return at::tensor(ids, at::kInt); }

Data encode(const Text& text, const Vocabulary& vocabulary) {
  return {.train = to_tensor(vocabulary.ids(text.train)),
          .validation = to_tensor(vocabulary.ids(text.validation)),
          .test = to_tensor(vocabulary.ids(text.test)),
          .vocabulary = vocabulary.size(),
          .floor = std::nullopt};
}

Data from_folder(const std::filesystem::path& folder, const Settings& settings) {
  const Text text = read_text(folder);
  return encode(text, Vocabulary(text.train, settings.vocabulary_size));
}

std::vector<std::string> corpus_words(const corpus::Grammar& grammar, uint64_t seed,
                                      int64_t words) {
  std::vector<std::string> text;
  for (const auto id : corpus::generate(grammar, seed, words)) {
    text.push_back(grammar.lexicon().words()[static_cast<size_t>(id)]);
  }
  return text;
}

Data from_corpus(const Settings& settings) {
  const corpus::Grammar grammar;
  const auto seed = 3 * static_cast<uint64_t>(settings.corpus_seed);
  const auto held_out = std::max<int64_t>(settings.corpus_words / 10, 1);
  const Text text{.train = corpus_words(grammar, seed, settings.corpus_words),
                  .validation = corpus_words(grammar, seed + 1, held_out),
                  .test = corpus_words(grammar, seed + 2, held_out)};
  // All words of the language, also those that happen not to be in the training split: were one of
  // them <unk>, the floor would not hold.
  const auto& lexicon = grammar.lexicon().words();
  auto known = text.train;
  known.insert(known.end(), lexicon.begin(), lexicon.end());
  const Vocabulary vocabulary(known, settings.vocabulary_size);
  auto data = encode(text, vocabulary);
  const bool complete = vocabulary.size() == static_cast<int64_t>(lexicon.size()) + 1;
  if (complete) data.floor = grammar.entropy();
  return data;
}

void check_length(const at::Tensor& tokens, std::string_view split, const Settings& settings) {
  if (tokens.size(0) > settings.sequence_length) return;
  throw Error(
      fmt::format("the {} split has {} words, too few for one window of {} and its targets; "
                  "give more text or a shorter sequence_length",
                  split, tokens.size(0), settings.sequence_length));
}

}  // namespace

const at::Tensor& Data::split(std::string_view name) const {
  return name == "train" ? train : name == "validation" ? validation : test;
}

Data load_data(const Options& options, const Settings& settings) {
  auto data = options.data ? from_folder(*options.data, settings) : from_corpus(settings);
  check_length(data.train, "training", settings);
  check_length(data.validation, "validation", settings);
  check_length(data.test, "test", settings);
  return data;
}

double unigram_cross_entropy(const at::Tensor& train, const at::Tensor& text, int64_t vocabulary) {
  const auto frequency = at::bincount(train, /*weights=*/{}, vocabulary).to(at::kDouble) + 1;
  const auto nats = -(frequency / frequency.sum()).log();
  return nats.index_select(0, text).mean().item<double>();
}

}  // namespace tasks::language_model

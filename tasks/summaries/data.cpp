#include "data.hpp"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <algorithm>

#include "parts.hpp"
#include "splits.hpp"
#include "tasks/prepared.hpp"
#include "transformer.hpp"
#include "words.hpp"

namespace tasks::summaries {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<const Pairs> read_pairs(const Split& split, const Tokenizer& tokenizer,
                                        const Settings& settings) {
  auto pairs =
      std::make_shared<Pairs>(settings.source_length, settings.target_length, settings.padding);
  split.for_each([&](const Pair& pair) {
    pairs->add(tokenizer.encode(settings.prefix + pair.document, settings.source_length),
               tokenizer.encode(pair.summary, settings.target_length));
  });
  return pairs;
}

// known: words that count as seen, wherever they are.
std::shared_ptr<const Tokenizer> words_in(const Split& train, const Settings& settings,
                                          const std::vector<std::string>& known) {
  Counts counts;
  for (const auto& word : known) ++counts[word];
  train.for_each([&](const Pair& pair) {
    for (auto& word : words_of(settings.prefix + pair.document)) ++counts[std::move(word)];
    for (auto& word : words_of(pair.summary)) ++counts[std::move(word)];
  });
  return std::make_shared<Vocabulary>(counts, settings.vocabulary_size);
}

// tokenizer: none, where the words of the training split are to be numbered.
Data from_folder(const fs::path& folder, const Settings& settings,
                 std::shared_ptr<const Tokenizer> tokenizer,
                 const std::vector<std::string>& known) {
  const Split train(folder, "train"), validation(folder, "validation"), test(folder, "test");
  if (tokenizer == nullptr) tokenizer = words_in(train, settings, known);
  return {.train = read_pairs(train, *tokenizer, settings),
          .validation = read_pairs(validation, *tokenizer, settings),
          .test = read_pairs(test, *tokenizer, settings),
          .tokenizer = tokenizer,
          .floor = std::nullopt};
}

// The folder is ours: whoever damaged a file of it need not look for another copy.
Data from_cache(const fs::path& folder, const Settings& settings,
                std::shared_ptr<const Tokenizer> tokenizer,
                const std::vector<std::string>& known) try {
  return from_folder(folder, settings, std::move(tokenizer), known);
} catch (const Error& error) {
  throw Error(fmt::format(
      "{} These are built-in data: delete the folder {}, and the next run creates it again.",
      error.what(), folder.string()));
}

Data from_stories(const Settings& settings, std::shared_ptr<const Tokenizer> tokenizer) {
  const Stories stories(settings.salience);
  const auto* const kind = settings.salience == Salience::lead ? "lead" : "count";
  // What decides the content is in the name; the 1 grows when the stories change.
  const auto name =
      fmt::format("summaries-1-{}-{}-{}", kind, settings.documents, settings.corpus_seed);
  const auto folder = prepared(name, [&](const fs::path& unfinished) {
    const auto seed = 3 * static_cast<uint64_t>(settings.corpus_seed);
    const auto held_out = std::max<int64_t>(settings.documents / 20, 1);
    write_stories(stories, seed, settings.documents, unfinished / "train.jsonl");
    write_stories(stories, seed + 1, held_out, unfinished / "validation.jsonl");
    write_stories(stories, seed + 2, held_out, unfinished / "test.jsonl");
  });
  const auto words = stories.words();
  auto data = from_cache(folder, settings, std::move(tokenizer), words);
  // A word that were <unk> could be guessed, and a summary that were cut would have fewer words.
  constexpr int64_t kSummary = 6, kLongestDocument = 5 * 7 + 1;
  const bool complete = !settings.tokenizer && settings.prefix.empty() &&
                        data.tokenizer->size() == static_cast<int64_t>(words.size()) + 3 &&
                        settings.target_length >= kSummary &&
                        settings.source_length >= kLongestDocument;
  if (complete) data.floor = stories.entropy_per_word();
  return data;
}

// Writes words at the start of a row; what follows stays as it is.
void fill_row(torch::Tensor& rows, int64_t row, c10::ArrayRef<int32_t> words, int64_t from) {
  auto* const values = rows.mutable_data_ptr<int64_t>() + row * rows.size(1) + from;
  std::ranges::copy(words, values);
}

}  // namespace

void Pairs::add(const std::vector<int32_t>& document, const std::vector<int32_t>& summary) {
  TORCH_CHECK_VALUE(static_cast<int64_t>(document.size()) <= source_length_ &&
                        static_cast<int64_t>(summary.size()) <= target_length_,
                    "a pair is too long");
  documents_.insert(documents_.end(), document.begin(), document.end());
  summaries_.insert(summaries_.end(), summary.begin(), summary.end());
  ends_.push_back({documents_.size(), summaries_.size()});
}

std::pair<int64_t, int64_t> Pairs::lengths(c10::ArrayRef<size_t> indices) const {
  if (padding_ == Padding::full) return {source_length_, target_length_};
  size_t document = 1, summary = 1;
  for (const auto index : indices) {
    document = std::max(document, ends_[index].document - begin_of(index).document);
    summary = std::max(summary, ends_[index].summary - begin_of(index).summary);
  }
  // GPUs' fast kernels take rows of eight numbers; a few lengths also recur, and memory is reused.
  const auto rounded = [](size_t words, int64_t most) {
    return std::min((static_cast<int64_t>(words) + 7) / 8 * 8, most);
  };
  return {rounded(document, source_length_), rounded(summary, target_length_)};
}

Batch Pairs::fetch(c10::ArrayRef<size_t> indices) const {
  const auto samples = static_cast<int64_t>(indices.size());
  const auto [source_length, target_length] = lengths(indices);
  auto documents = new_tensor({samples, source_length}, torch::kLong).fill_(kPad);
  auto told = new_tensor({samples, target_length}, torch::kLong).fill_(kPad);
  auto summaries = new_tensor({samples, target_length}, torch::kLong).fill_(kPad);
  int64_t count = 0;
  for (int64_t row = 0; row < samples; ++row) {
    const auto index = indices[static_cast<size_t>(row)];
    const auto start = begin_of(index);
    const auto words = ends_[index].summary - start.summary;
    const c10::ArrayRef<int32_t> summary(summaries_.data() + start.summary, words);
    fill_row(documents, row,
             {documents_.data() + start.document, ends_[index].document - start.document}, 0);
    fill_row(summaries, row, summary, 0);
    fill_row(told, row, summary.slice(0, words - 1), 1);  // each has its kEnd at least
    count += static_cast<int64_t>(words);
  }
  return {{documents, told}, Target(summaries, count)};
}

torch::Tensor Pairs::target_counts(int64_t words) const {
  const auto all = at::tensor(summaries_, at::TensorOptions(torch::kInt));
  return at::bincount(all, /*weights=*/{}, words).to(torch::kDouble);
}

const std::shared_ptr<const Pairs>& Data::split(std::string_view name) const {
  return name == "train" ? train : name == "validation" ? validation : test;
}

Data load_data(const Options& options, const Settings& settings) {
  std::shared_ptr<const Tokenizer> tokenizer;
  if (settings.tokenizer) tokenizer = load_sentence_pieces(*settings.tokenizer);
  if (!options.data) return from_stories(settings, std::move(tokenizer));
  return from_folder(*options.data, settings, std::move(tokenizer), {});
}

double unigram_cross_entropy(const Pairs& train, const Pairs& pairs, int64_t vocabulary) {
  const auto frequency = train.target_counts(vocabulary) + 1;
  const auto nats = -(frequency / frequency.sum()).log();
  const auto counts = pairs.target_counts(vocabulary);
  return ((nats * counts).sum() / counts.sum()).item<double>();
}

}  // namespace tasks::summaries

#include "greedy.hpp"

#include <ATen/Functions.h>

#include <algorithm>
#include <numeric>

namespace tasks::summaries {
namespace {

// The words of a row, [words], up to the first that ends it.
std::vector<int64_t> words_in(const torch::Tensor& row) {
  const auto host = row.cpu().contiguous();
  const auto* const first = host.const_data_ptr<int64_t>();
  const auto* const last = std::find_if(first, first + host.numel(),
                                        [](int64_t word) { return word == kEnd || word == kPad; });
  return {first, last};
}

}  // namespace

std::vector<std::vector<int64_t>> write_greedily(EncoderDecoder& model,
                                                 const torch::Tensor& documents, int64_t longest) {
  const torch::NoGradGuard no_grad;
  model.eval();
  const auto encoded = model.encode(documents);
  auto written = at::full({documents.size(0), 1}, kPad, documents.options());
  auto ended = at::zeros({documents.size(0)}, documents.options().dtype(torch::kBool));
  for (int64_t step = 0; step < longest && !ended.all().item<bool>(); ++step) {
    const auto logits = model.decode(written, encoded, documents).select(1, -1);
    // Who has ended writes ends.
    const auto next = logits.argmax(-1).masked_fill(ended, kEnd);
    ended = ended.logical_or(next.eq(kEnd));
    written = at::cat({written, next.unsqueeze(1)}, 1);
  }
  std::vector<std::vector<int64_t>> summaries;
  for (const auto& row : written.narrow(1, 1, written.size(1) - 1).unbind(0)) {
    summaries.push_back(words_in(row));
  }
  return summaries;
}

Rouge rouge_of_greedy(EncoderDecoder& model, const Pairs& pairs, size_t batch_size) {
  const auto device = model.parameters().front().device();
  Rouge sum;
  for (size_t start = 0; start < pairs.size(); start += batch_size) {
    std::vector<size_t> indices(std::min(batch_size, pairs.size() - start));
    std::iota(indices.begin(), indices.end(), start);
    const auto batch = pairs.fetch(indices);
    const auto& wanted = batch.target.tensor();
    auto written = write_greedily(model, batch.input[0].to(device), wanted.size(1));
    for (size_t i = 0; i < indices.size(); ++i) {
      std::ranges::replace(written[i], kUnknown, int64_t{-1});
      const auto one = rouge(written[i], words_in(wanted[static_cast<int64_t>(i)]));
      sum = {sum.one + one.one, sum.two + one.two, sum.longest + one.longest};
    }
  }
  const auto count = double(pairs.size());
  return {sum.one / count, sum.two / count, sum.longest / count};
}

}  // namespace tasks::summaries

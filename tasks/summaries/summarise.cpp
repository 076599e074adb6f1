// Shows what a trained model writes: summaries of some documents of the test split, and the ROUGE
// of all of them. No trainer prints this: a score is made of sums over what a model returned, and a
// summary needs the model again for each word.
//
//   bin/summarise --task summaries <the trainer's other options>
//
// It reads model-best.pt in the output folder.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <algorithm>

#include "data.hpp"
#include "greedy.hpp"
#include "settings.hpp"
#include "tasks/registry.hpp"
#include "transformer.hpp"
#include "weights.hpp"

namespace tasks::summaries {

Entry entry();

namespace {

std::string in_words(const torch::Tensor& row, const Tokenizer& tokenizer) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < row.numel(); ++i) {
    const auto id = row[i].item<int64_t>();
    if (id == kPad || id == kEnd) break;
    ids.push_back(id);
  }
  return tokenizer.decode(ids);
}

void show_some(EncoderDecoder& model, const Data& data, torch::Device device) {
  std::vector<size_t> indices;
  for (size_t i = 0; i < std::min<size_t>(3, data.test->size()); ++i) indices.push_back(i);
  const auto batch = data.test->fetch(indices);
  const auto& wanted = batch.target.tensor();
  const auto written = write_greedily(model, batch.input[0].to(device), wanted.size(1));
  for (size_t i = 0; i < indices.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    fmt::println("document: {}\nexpected: {}\n     got: {}",
                 in_words(batch.input[0][row], *data.tokenizer),
                 in_words(wanted[row], *data.tokenizer),
                 in_words(torch::tensor(written[i], torch::kLong), *data.tokenizer));
  }
}

void summarise(const Options& options) {
  apply(options);
  auto settings = Settings::from(Config::load(options.config, entry()));
  const auto data = load_data(options, settings);
  settings.model.vocabulary =
      settings.weights ? Weights(*settings.weights).vocabulary() : data.tokenizer->size();
  const auto model = std::make_shared<EncoderDecoder>(settings.model);
  torch::load(model, options.output / "model-best.pt");
  const auto device = options.device.value_or(
      torch::Device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU));
  model->to(device, options.precision);
  show_some(*model, data, device);
  const auto score = rouge_of_greedy(*model, *data.test, static_cast<size_t>(options.batch_size));
  fmt::println("ROUGE-1 {:.4f}, ROUGE-2 {:.4f}, ROUGE-L {:.4f} over {} documents", score.one,
               score.two, score.longest, data.test->size());
}

}  // namespace
}  // namespace tasks::summaries

int main(int argc, char** argv) try {
  tasks::summaries::summarise(tasks::parse_options(argc, argv));
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}

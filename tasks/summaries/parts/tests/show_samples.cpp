// Prints what a trainer of the same options would be given: JSON of all samples' numbers, as
// {"train": [[[document...], [summary...]], ...], ...}, without what pads them.
#include <fmt/format.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "../../data.hpp"
#include "../../settings.hpp"
#include "../../transformer.hpp"
#include "tasks/config.hpp"
#include "tasks/registry.hpp"

namespace tasks::summaries {

Entry entry();

namespace {

std::vector<int64_t> numbers(const torch::Tensor& row) {
  const auto some = row.masked_select(row.ne(kPad));
  return {some.const_data_ptr<int64_t>(), some.const_data_ptr<int64_t>() + some.numel()};
}

void show(const Options& options) {
  const auto data = load_data(options, Settings::from(Config::load(options.config, entry())));
  nlohmann::json splits{{"size", data.tokenizer->size()}};
  for (const auto* name : {"train", "validation", "test"}) {
    const auto& pairs = *data.split(name);
    auto& samples = splits[name] = nlohmann::json::array();
    for (size_t i = 0; i < pairs.size(); ++i) {
      const auto batch = pairs.fetch({i});
      samples.push_back({numbers(batch.input[0][0]), numbers(batch.target.tensor()[0])});
    }
  }
  fmt::println("{}", splits.dump());
}

}  // namespace
}  // namespace tasks::summaries

int main(int argc, char** argv) try {
  tasks::summaries::show(tasks::parse_options(argc, argv));
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}

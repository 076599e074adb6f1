#include "data.hpp"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <thread>

#include "distributed_utils/safetensors.hpp"
#include "drawn.hpp"
#include "tasks/prepared.hpp"

namespace tasks::signals {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> kSplits{"train", "validation", "test"};

fs::path file_of(const fs::path& folder, std::string_view split) {
  return folder / fmt::format("{}.safetensors", split);
}

// The further splits have two signals more each, so that no split is as long as another.
int64_t size_of(size_t split, const DataOptions& options) {
  return split == 0 ? options.train_signals
                    : options.evaluation_signals + 2 * (static_cast<int64_t>(split) - 1);
}

void write_split(const DataOptions& options, size_t split, const fs::path& file) {
  const int64_t signals = size_of(split, options);
  const auto values = at::zeros({signals, options.length}, at::kDouble);
  const auto labels = at::full({signals, options.length}, kPad, at::kLong);
  double least = 0, targets = 0;
  for (int64_t i = 0; i < signals; ++i) {
    const auto seed = static_cast<uint64_t>(options.seed) * kSplits.size() + split;
    const auto signal = draw(seed, static_cast<uint64_t>(i), options.length);
    const auto moments = static_cast<int64_t>(signal.values.size());
    values[i].narrow(0, 0, moments).copy_(at::tensor(signal.values, at::kDouble));
    labels[i].narrow(0, 0, moments).copy_(at::tensor(signal.labels, at::kLong));
    least += least_loss(signal);
    targets += static_cast<double>(moments);
  }
  distributed_utils::save_file(
      {{"values", values}, {"labels", labels}, {"least_loss", at::full({1}, least / targets)}},
      file);
}

// A file of a folder that prepared() made is whole, unless somebody has damaged it since.
at::Tensor load(const fs::path& folder, std::string_view split, const std::string& name) {
  const auto file = file_of(folder, split);
  try {
    return distributed_utils::load_file(file).at(name);
  } catch (const std::exception& error) {
    throw Error(fmt::format("{}: {}\nFix: delete the folder {}; the next run creates it again.",
                            file.string(), error.what(), folder.string()));
  }
}

struct Signals : Dataset::Source {
  at::Tensor values, labels;

  Batch fetch(c10::ArrayRef<size_t> indices) const override {
    const auto which = at::tensor(std::vector<int64_t>(indices.begin(), indices.end()), at::kLong);
    const auto target = labels.index_select(0, which);
    return {values.index_select(0, which), {target, target.ne(kPad).sum().item<int64_t>()}};
  }

  size_t size() const override { return static_cast<size_t>(labels.size(0)); }
};

}  // namespace

fs::path prepared_signals(const DataOptions& options) {
  // The 1 grows when what is drawn changes.
  const auto name = fmt::format("signals-1-{}-{}-{}-{}", options.train_signals,
                                options.evaluation_signals, options.length, options.seed);
  return prepared(name, [&](const fs::path& empty) {
    std::this_thread::sleep_for(std::chrono::duration<double>(options.preparation_seconds));
    for (size_t split = 0; split < kSplits.size(); ++split) {
      write_split(options, split, file_of(empty, kSplits.at(split)));
    }
  });
}

std::shared_ptr<const Dataset::Source> make_source(const fs::path& folder, std::string_view split,
                                                   torch::Dtype type) {
  auto source = std::make_shared<Signals>();
  source->values = load(folder, split, "values").to(type);
  source->labels = load(folder, split, "labels");
  return source;
}

double least_loss_of(const fs::path& folder, std::string_view split) {
  return load(folder, split, "least_loss").item<double>();
}

}  // namespace tasks::signals

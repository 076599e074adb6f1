#include "data.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>

#include <algorithm>

namespace tasks::points {

namespace {

constexpr double kNoise = 0.05;

struct Points : Dataset::Source {
  torch::Tensor position, kind, height;

  Points(size_t split, int64_t samples, double reach, torch::Dtype type) {
    const auto generator = at::detail::createCPUGenerator(31 + split);
    const auto in_doubles = at::TensorOptions(torch::kDouble);
    const auto where = (at::rand({samples, 2}, generator, in_doubles) * 2 - 1) * reach;
    kind = at::randint(kKinds, {samples}, generator, at::TensorOptions(torch::kLong));
    const auto slope = kind.to(torch::kDouble).unsqueeze(1) - 1;
    const auto noise = at::randn({samples, 1}, generator, in_doubles) * kNoise;
    height = (where.narrow(1, 0, 1) * slope + where.narrow(1, 1, 1) + noise).to(type);
    position = where.to(type);
  }

  Batch fetch(c10::ArrayRef<size_t> indices) const override {
    const auto which =
        torch::tensor(std::vector<int64_t>(indices.begin(), indices.end()), torch::kLong);
    return {{position.index_select(0, which), kind.index_select(0, which)},
            height.index_select(0, which)};
  }

  size_t size() const override { return static_cast<size_t>(kind.size(0)); }
};

}  // namespace

std::vector<std::string> split_names() { return {"train", "validation", "test", "near", "far"}; }

std::shared_ptr<const Dataset::Source> make_source(std::string_view split,
                                                   const DataOptions& options) {
  const auto names = split_names();
  const auto place = static_cast<size_t>(std::ranges::find(names, split) - names.begin());
  const int64_t samples = place == 0
                              ? options.train_samples
                              : options.evaluation_samples + 2 * (static_cast<int64_t>(place) - 1);
  const double reach = split == "near" ? 0.5 : split == "far" ? 2 : 1;
  return std::make_shared<Points>(place, samples, reach, options.type);
}

}  // namespace tasks::points

// Step 03: Each rank gets its share of the data.

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// The cyclic distribution of HPF, "DISTRIBUTE (CYCLIC)": place p belongs to rank p mod W.
std::vector<size_t> cyclic(const std::vector<size_t>& order, const World& world) {
  std::vector<size_t> mine;
  for (size_t place = 0; place < order.size(); ++place) {
    if (place % world.world_size == static_cast<size_t>(world.rank)) mine.push_back(order[place]);
  }
  return mine;
}

// Shuffled by a generator of its own, seeded alike on all ranks; what does not come out even is
// dropped, so that all ranks take equally many steps.
std::vector<size_t> training_order(size_t n, uint64_t seed, const World& world) {
  auto generator = at::detail::createCPUGenerator(seed);
  const auto shuffled = torch::randperm(static_cast<int64_t>(n), generator, torch::kLong);
  const auto* first = shuffled.data_ptr<int64_t>();
  return {first, first + (n - n % world.world_size)};
}

std::vector<size_t> plain_order(size_t n) {
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}

// Hands out a list of samples, from its start in every pass.
class ListSampler : public data::samplers::Sampler<> {
 public:
  explicit ListSampler(std::vector<size_t> list) : list_(std::move(list)) {}

  void reset(std::optional<size_t> = std::nullopt) override { position_ = 0; }

  std::optional<std::vector<size_t>> next(size_t batch_size) override {
    const size_t count = std::min(batch_size, list_.size() - position_);
    if (count == 0) return std::nullopt;
    const auto begin = list_.begin() + static_cast<std::ptrdiff_t>(position_);
    position_ += count;
    return std::vector<size_t>(begin, begin + static_cast<std::ptrdiff_t>(count));
  }

  void save(torch::serialize::OutputArchive&) const override {}
  void load(torch::serialize::InputArchive&) override {}

 private:
  std::vector<size_t> list_;
  size_t position_ = 0;
};

tasks::Score train(const tasks::Task& task, auto& model, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    optimizer.zero_grad();
    const auto loss = task.loss(model->forward(input), target);
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  return task.score(totals);
}

tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model->forward(input), target).totals();
  }
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  const ListSampler train_sampler(
      cyclic(training_order(*train_set.size(), options.seed, world), world));
  const ListSampler valid_sampler(cyclic(plain_order(*valid_set.size()), world));
  const ListSampler test_sampler(cyclic(plain_order(*test_set.size()), world));

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto model = task->make_model();
  model->to(world.device);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained =
        train(*task, model, *train_loader, *optimizer, *schedule, world.device, progress);
    const auto valid = evaluate(*task, model, *valid_loader, world.device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*task, model, *test_loader, world.device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}

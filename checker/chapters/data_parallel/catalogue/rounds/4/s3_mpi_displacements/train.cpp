// Step 03: Each rank has its share of the data.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <numeric>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// One block of samples for each rank, as MPI_Scatterv deals them out. The first ranks take one
// more where the blocks do not come out even.
class BlockSampler : public data::samplers::Sampler<> {
 public:
  BlockSampler(size_t samples, int rank, int ranks) {
    const auto r = static_cast<size_t>(rank);
    const auto size = static_cast<size_t>(ranks);
    const size_t count = samples / size + (r < samples % size ? 1 : 0);
    const size_t displacement = r * count;
    indices_.resize(count);
    std::iota(indices_.begin(), indices_.end(), displacement);
  }

  void reset(std::optional<size_t> /*new_size*/ = std::nullopt) override { position_ = 0; }

  std::optional<std::vector<size_t>> next(size_t batch_size) override {
    if (position_ == indices_.size()) return std::nullopt;
    const size_t count = std::min(batch_size, indices_.size() - position_);
    const auto first = indices_.begin() + static_cast<std::ptrdiff_t>(position_);
    position_ += count;
    return std::vector<size_t>(first, first + static_cast<std::ptrdiff_t>(count));
  }

  void save(torch::serialize::OutputArchive& archive) const override {
    archive.write("position", torch::tensor(static_cast<int64_t>(position_)), true);
  }
  void load(torch::serialize::InputArchive& archive) override {
    torch::Tensor position;
    archive.read("position", position, true);
    position_ = static_cast<size_t>(position.item<int64_t>());
  }

 private:
  std::vector<size_t> indices_;
  size_t position_ = 0;
};

tasks::Loss train_step(const tasks::Task& task, auto& model, auto& optimizer,
                       const tasks::Batch& batch, torch::Device device) {
  const auto [input, target] = batch.to(device);
  optimizer.zero_grad();
  const auto loss = task.loss(model->forward(input), target);
  loss.mean().backward();
  optimizer.step();
  return loss;
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

  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  const DistributedSampler train_sampler(
      *train_set.size(), {.shuffle = true, .seed = options.seed, .drop_last = true});
  const BlockSampler valid_sampler(*valid_set.size(), rank, world_size);
  const BlockSampler test_sampler(*test_set.size(), rank, world_size);

  auto train_loader = data::make_data_loader(
      train_set, train_sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler,
                                             data::DataLoaderOptions(options.batch_size));
  auto test_loader = data::make_data_loader(test_set, test_sampler,
                                            data::DataLoaderOptions(options.batch_size));

  const auto model = task->make_model();
  model->to(device);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    model->train();
    auto totals = task->no_totals(device);
    for (auto& batch : *train_loader) {
      const auto loss = train_step(*task, model, *optimizer, batch, device);
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    const auto trained = task->score(totals);
    const auto valid = evaluate(*task, model, *valid_loader, device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*task, model, *test_loader, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}

// Step 04: The ranks train one model.

#include <fmt/format.h>
#include <torch/torch.h>

#include <functional>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Reading takes time. The first pass reads and keeps, later ones take what was kept.
template <typename Loader>
class Cached {
 public:
  Cached(Loader& loader, torch::Device device) : loader_(loader), device_(device) {}

  // Until `use` returns false.
  void each(const std::function<bool(const tasks::Batch&)>& use) {
    if (kept_.empty())
      for (auto& batch : loader_) kept_.push_back(batch.to(device_));
    for (const auto& batch : kept_)
      if (!use(batch)) return;
  }

 private:
  Loader& loader_;
  torch::Device device_;
  std::vector<tasks::Batch> kept_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});

  // Training drops what does not fill a batch, so that every step averages over equally many.
  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  Cached train_data(*train_loader, device);
  Cached valid_data(*valid_loader, device);
  Cached test_data(*test_loader, device);

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto train = [&, device = device] {
    model->train();
    auto totals = task->no_totals(device);
    train_data.each([&](const tasks::Batch& batch) {
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(batch.input), batch.target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      return progress.step(loss);
    });
    return task->score(totals);
  };
  const auto evaluate = [&, device = device](auto& split) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(device);
    split.each([&](const tasks::Batch& batch) {
      totals += task->loss(model->forward(batch.input), batch.target).totals();
      return true;
    });
    return task->score(totals);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = train();
    const auto valid = evaluate(valid_data);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(test_data);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}

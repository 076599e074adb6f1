// A batch goes through the model sample by sample; only the last one talks.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

using Model = DistributedDataParallel<tasks::Model>;

// The batch of these samples, one sample a piece.
std::vector<tasks::Batch> pieces_of(tasks::Dataset& set, const std::vector<size_t>& indices,
                                    torch::Device device) {
  std::vector<tasks::Batch> pieces;
  for (const size_t index : indices)
    pieces.push_back(set.get_batch(c10::ArrayRef<size_t>(index)).to(device));
  return pieces;
}

tasks::Loss accumulate(const tasks::Task& task, const Model& model,
                       const std::vector<tasks::Batch>& pieces) {
  int64_t count = 0;
  for (const auto& piece : pieces) count += piece.target.count();
  tasks::Loss whole{.sum = {}, .count = count, .metrics = {}};
  const auto take = [&](const tasks::Batch& piece) {
    const auto loss = task.loss(model->forward(piece.input), piece.target);
    (loss.sum / static_cast<double>(count)).backward();
    const auto sum = loss.sum.detach();
    whole.sum = whole.sum.defined() ? whole.sum + sum : sum;
    if (loss.metrics.defined())
      whole.metrics = whole.metrics.defined() ? whole.metrics + loss.metrics : loss.metrics;
  };
  {
    const auto quiet = model->no_sync();
    for (size_t i = 0; i + 1 < pieces.size(); ++i) take(pieces[i]);
  }
  take(pieces.back());
  return whole;
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto device = setup({.backend = options.backend, .device = options.device}).device;

  const auto task = tasks::make_task(options);
  auto train_set = task->dataset("train");
  auto valid_set = task->dataset("validation");
  auto test_set = task->dataset("test");
  DistributedSampler deal(*train_set.size(),
                          {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler valid_deal(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_deal(*test_set.size(), {.shuffle = false, .pad = false});

  const auto module = task->make_model();
  module->to(device);
  const Model model(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  const auto full = static_cast<size_t>(options.batch_size);

  const auto evaluate = [&](tasks::Dataset& set, DistributedSampler& sampler) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(device);
    sampler.reset();
    while (const auto indices = sampler.next(full)) {
      const auto [input, target] = set.get_batch(*indices).to(device);
      totals += task->loss(model->forward(input), target).totals();
    }
    return task->score(totals);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    deal.set_epoch(epoch);
    deal.reset();
    model->train();
    auto totals = task->no_totals(device);
    while (const auto indices = deal.next(full)) {
      if (indices->size() < full) break;
      optimizer->zero_grad();
      const auto loss = accumulate(*task, model, pieces_of(train_set, *indices, device));
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    const auto trained = task->score(totals);
    const auto valid = evaluate(valid_set, valid_deal);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }
  const auto test = evaluate(test_set, test_deal);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}

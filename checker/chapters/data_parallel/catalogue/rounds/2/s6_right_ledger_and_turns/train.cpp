// Step 06: One rank speaks, one rank writes.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Each rank in turn reads out its totals to all others; everybody writes them down and adds up.
class Ledger {
 public:
  Ledger(const tasks::Task& task, const World& world)
      : task_(task), world_(world), mine_(task.no_totals(world.device)) {}

  void enter(const tasks::Loss& loss) { mine_ += loss.totals(); }

  tasks::Score balance() const {
    auto sum = torch::zeros_like(mine_);
    for (int reader = 0; reader < world_.world_size; ++reader) {
      const auto page = reader == world_.rank ? mine_.clone() : torch::zeros_like(mine_);
      broadcast(page, reader);
      sum += page;
    }
    return task_.score(sum);
  }

 private:
  const tasks::Task& task_;
  const World& world_;
  torch::Tensor mine_;
};

// Rank 0 goes first through the scope, all others after it.
class RankZeroFirst {
 public:
  explicit RankZeroFirst(const World& world) : first_(world.rank == 0) {
    if (!first_) barrier();
  }
  ~RankZeroFirst() {
    if (first_) barrier();
  }
  RankZeroFirst(const RankZeroFirst&) = delete;
  RankZeroFirst& operator=(const RankZeroFirst&) = delete;

 private:
  bool first_;
};

// The best score, and what to do when there is a better one.
template <typename OnImprovement>
class Best {
 public:
  explicit Best(OnImprovement on_improvement) : on_improvement_(std::move(on_improvement)) {}
  void offer(const tasks::Score& score) {
    if (!(score < score_)) return;
    score_ = score;
    on_improvement_();
  }
  const tasks::Score& score() const { return score_; }

 private:
  OnImprovement on_improvement_;
  tasks::Score score_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto module = task->make_model();
  module->to(world.device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto loss_of = [&](const tasks::Batch& batch) {
    const auto [input, target] = batch.to(world.device);
    return task->loss(model->forward(input), target);
  };
  const auto train = [&](int64_t epoch) {
    train_sampler.set_epoch(epoch);
    model->train();
    Ledger ledger(*task, world);
    for (auto& batch : *train_loader) {
      optimizer->zero_grad();
      const auto loss = loss_of(batch);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      ledger.enter(loss);
      if (!progress.step(loss)) break;
    }
    return ledger.balance();
  };
  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    Ledger ledger(*task, world);
    for (auto& batch : loader) ledger.enter(loss_of(batch));
    return ledger.balance();
  };
  // When it returns, the file is there, on whatever rank.
  const auto save = [&](std::string_view name) {
    const RankZeroFirst turn(world);
    save0(*model, options.output / name);
  };

  Best best([&] { save("model-best.safetensors"); });
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained = train(epoch);
    const auto valid = evaluate(*valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    best.offer(valid);
  }

  const auto test = evaluate(*test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best.score()));
  print0("test loss: {}", task->describe(test));
  save("model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}

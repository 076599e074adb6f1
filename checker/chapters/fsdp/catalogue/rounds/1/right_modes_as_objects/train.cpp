// Modes as objects: Evaluating switches everything that an evaluation needs, and switches it back.
#include <torch/torch.h>

#include <functional>
#include <map>
#include <string>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;
using Wrapper = FullyShardedDataParallelImpl<tasks::Model>;

class Evaluating {
 public:
  explicit Evaluating(Wrapper& model) : model_(model), whole_(model.summon_full_params()) {
    model_.eval();
  }
  ~Evaluating() { model_.train(); }
  Evaluating(const Evaluating&) = delete;
  Evaluating& operator=(const Evaluating&) = delete;

 private:
  Wrapper& model_;
  torch::NoGradGuard no_grad_;
  WholeParameters whole_;
};

// Adds up losses over all ranks.
class Ledger {
 public:
  Ledger(const tasks::Task& task, torch::Device device)
      : task_(task), totals_(task.no_totals(device)) {}
  void note(const tasks::Loss& loss) { totals_ += loss.totals(); }
  tasks::Score close() {
    all_reduce(totals_, ReduceOp::SUM);
    return task_.score(totals_);
  }

 private:
  const tasks::Task& task_;
  torch::Tensor totals_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto world = setup({.backend = options.backend, .device = options.device});
  const auto task = tasks::make_task(options);
  const auto& device = world.device;

  std::map<std::string, tasks::Dataset> sets;
  for (const auto* name : {"train", "validation", "test"}) {
    sets.emplace(name, task->dataset(name));
  }
  DistributedSampler training_order(*sets.at("train").size(),
                                    {.shuffle = true, .seed = options.seed, .drop_last = true});
  auto training = torch::data::make_data_loader(
      sets.at("train"), training_order,
      torch::data::DataLoaderOptions(options.batch_size).drop_last(true));

  auto network = task->make_model();
  network->to(device);
  const std::shared_ptr<Wrapper> model = std::make_shared<Wrapper>(
      network, FullyShardedDataParallelOptions{.units = network->blocks()});
  network.reset();  // only the wrapper holds it from now on
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *sets.at("train").size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const std::function<tasks::Loss(const tasks::Batch&)> loss_of = [&](const tasks::Batch& batch) {
    const auto near = batch.to(device);
    return task->loss(model->forward(near.input), near.target);
  };
  const auto step = [&](const tasks::Batch& batch) {
    optimizer->zero_grad();
    auto loss = loss_of(batch);
    loss.mean().backward();
    optimizer->step();
    return loss;
  };
  const auto evaluate = [&](const std::string& name) {
    const auto& set = sets.at(name);
    auto loader = torch::data::make_data_loader(
        set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        torch::data::DataLoaderOptions(options.batch_size));
    Ledger ledger(*task, device);
    const Evaluating mode(*model);
    for (auto& batch : *loader) ledger.note(loss_of(batch));
    return ledger.close();
  };

  model->train();
  tasks::Score best;
  for (int64_t epoch = 0; epoch != options.epochs && !progress.finished(); ++epoch) {
    training_order.set_epoch(static_cast<uint64_t>(epoch));
    Ledger ledger(*task, device);
    for (auto& batch : *training) {
      const auto loss = progress.take_step(batch, step);
      schedule->step();
      ledger.note(loss);
      if (!progress.step(loss)) break;
    }
    const auto trained = ledger.close();
    const auto valid = evaluate("validation");
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) save0(*model, options.output / "model-best.safetensors");
    best = std::min<tasks::Score>(best, valid);
  }
  const auto test = evaluate("test");
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}

// Every forward() is a collective. So all ranks agree on a number of evaluation batches that each of
// them has.
#include <torch/torch.h>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

namespace du = distributed_utils;

int64_t batches_of_all(const du::DistributedSampler& sampler, int64_t batch_size,
                       torch::Device device) {
  const auto mine = (static_cast<int64_t>(sampler.size()) + batch_size - 1) / batch_size;
  const auto number = torch::tensor({mine}, torch::dtype(torch::kLong)).to(device);
  du::all_reduce(number, du::ReduceOp::MIN);
  return number.item<int64_t>();
}

template <typename Model>
class Split {
 public:
  Split(const tasks::Task& task, const char* name, const tasks::Options& options,
        torch::Device device)
      : task_(task),
        device_(device),
        set_(task.dataset(name)),
        sampler_(*set_.size(), {.shuffle = false, .pad = false}),
        loader_(torch::data::make_data_loader(
            set_, sampler_, torch::data::DataLoaderOptions(options.batch_size))),
        count_(batches_of_all(sampler_, options.batch_size, device)) {}

  tasks::Score evaluate(const Model& model) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task_.no_totals(device_);
    auto batch = loader_->begin();
    for (int64_t i = 0; i < count_; ++i) {
      const auto [x, y] = batch->to(device_);
      totals += task_.loss(model->forward(x), y).totals();
      ++batch;
    }
    du::all_reduce(totals, du::ReduceOp::SUM);
    return task_.score(totals);
  }

 private:
  const tasks::Task& task_;
  torch::Device device_;
  tasks::Dataset set_;
  du::DistributedSampler sampler_;
  std::unique_ptr<torch::data::StatelessDataLoader<tasks::Dataset, du::DistributedSampler>>
      loader_;
  int64_t count_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const auto device = du::setup({.backend = options.backend, .device = options.device}).device;
  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  du::DistributedSampler sampler(*train_set.size(),
                                 {.shuffle = true, .seed = options.seed, .drop_last = true});
  const auto loader = torch::data::make_data_loader(
      train_set, sampler, torch::data::DataLoaderOptions(options.batch_size).drop_last(true));
  using Model = du::FullyShardedDataParallel<tasks::Model>;
  Split<Model> validation(*task, "validation", options, device);
  Split<Model> testing(*task, "test", options, device);

  const auto module = task->make_model();
  module->to(device);
  const Model model(module, {.units = module->blocks()});
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    sampler.set_epoch(epoch);
    model->train();
    auto totals = task->no_totals(device);
    for (auto& batch : *loader) {
      const auto loss = progress.take_step(batch, [&](const tasks::Batch& fresh) {
        const auto [x, y] = fresh.to(device);
        optimizer->zero_grad();
        const auto value = task->loss(model->forward(x), y);
        value.mean().backward();
        optimizer->step();
        return value;
      });
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    du::all_reduce(totals, du::ReduceOp::SUM);
    const auto trained = task->score(totals);
    const auto valid = validation.evaluate(model);
    progress.report(trained, valid);
    du::print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
               task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      du::save0(*model, options.output / "model-best.safetensors");
    }
  }
  const auto test = testing.evaluate(model);
  progress.report(test);
  du::print0("best validation loss: {}", task->describe(best));
  du::print0("test loss: {}", task->describe(test));
  du::save0(*model, options.output / "model-final.safetensors");
  du::destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}

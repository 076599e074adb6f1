// Step 06 with a ModelWriter whose files are never seen half written.
#include <fmt/format.h>
#include <torch/torch.h>

#include "distributed_utils/distributed_utils.hpp"
#include "tasks/progress.hpp"
#include "tasks/task.hpp"

using namespace distributed_utils;
namespace data = torch::data;

/// Writes models into a folder. Each rank writes to a name of its own and renames that when it is
/// complete: renaming is atomic, so whichever rank comes last, the file is whole.
class ModelWriter {
 public:
  ModelWriter(std::filesystem::path folder, int rank) : folder_(std::move(folder)), rank_(rank) {}

  void write(const torch::nn::Module& model, const std::string& name) const {
    const auto own = folder_ / fmt::format("{}.rank{}", name, rank_);
    save_file(state_dict(model), own);
    std::filesystem::rename(own, folder_ / name);
  }

 private:
  std::filesystem::path folder_;
  int rank_;
};

/// The best score so far, with its model in a file.
class Best {
 public:
  explicit Best(const ModelWriter& writer) : writer_(writer) {}
  void offer(const tasks::Score& score, const torch::nn::Module& model) {
    if (!(score < score_)) return;
    score_ = score;
    writer_.write(model, "model-best.safetensors");
  }
  const tasks::Score& score() const { return score_; }

 private:
  const ModelWriter& writer_;
  tasks::Score score_;
};

/// Sums over batches first and over ranks at the end.
class Sum {
 public:
  Sum(const tasks::Task& task, torch::Device device)
      : task_(task), totals_(task.no_totals(device)) {}
  Sum& operator+=(const tasks::Loss& loss) {
    totals_ += loss.totals();
    return *this;
  }
  tasks::Score over_ranks() && {
    all_reduce(totals_);
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
  const auto device = world.device;
  const auto task = tasks::make_task(options);

  const auto train_set = task->dataset("train");
  DistributedSampler sampler(*train_set.size(),
                             {.shuffle = true, .seed = options.seed, .drop_last = true});
  const auto train_loader = data::make_data_loader(
      train_set, sampler, data::DataLoaderOptions(options.batch_size).drop_last(true));

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto train = [&] {
    model->train();
    Sum sum(*task, device);
    for (auto& batch : *train_loader) {
      const auto [input, target] = batch.to(device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      sum += loss;
      if (!progress.step(loss)) break;
    }
    return std::move(sum).over_ranks();
  };
  const auto evaluate = [&](const char* split) {
    const torch::NoGradGuard no_grad;
    model->eval();
    const auto set = task->dataset(split);
    const auto loader = data::make_data_loader(
        set, DistributedSampler(*set.size(), {.shuffle = false, .pad = false}),
        data::DataLoaderOptions(options.batch_size));
    Sum sum(*task, device);
    for (auto& batch : *loader) {
      const auto [input, target] = batch.to(device);
      sum += task->loss(model->forward(input), target);
    }
    return std::move(sum).over_ranks();
  };

  const ModelWriter writer(options.output, world.rank);
  Best best(writer);
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    sampler.set_epoch(epoch);
    const auto trained = train();
    const auto valid = evaluate("validation");
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    best.offer(valid, *model);
  }
  const auto test = evaluate("test");
  progress.report(test);
  print0("best validation loss: {}", task->describe(best.score()));
  print0("test loss: {}", task->describe(test));
  writer.write(*model, "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}

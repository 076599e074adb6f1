// Step 03: Each rank gets its share of the data.

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// All indices of a sampler in one list.
std::vector<size_t> drain(DistributedSampler sampler) {
  std::vector<size_t> all;
  sampler.reset();
  while (const auto some = sampler.next(1024)) all.insert(all.end(), some->begin(), some->end());
  return all;
}

// Collective work needs the same count on all ranks: MPI_Allreduce with MPI_MIN.
size_t common_length(size_t mine, torch::Device device) {
  const auto length = torch::tensor({static_cast<int64_t>(mine)}).to(device);
  all_reduce(length, ReduceOp::MIN);
  return static_cast<size_t>(length.item<int64_t>());
}

// Fetches the batches of a list of samples, one after the other.
class Reader {
 public:
  Reader(tasks::Dataset set, std::vector<size_t> samples, size_t batch_size)
      : set_(std::move(set)), samples_(std::move(samples)), batch_size_(batch_size) {}

  size_t batches() const { return (samples_.size() + batch_size_ - 1) / batch_size_; }

  tasks::Batch read(size_t number) {
    const size_t begin = number * batch_size_;
    const size_t end = std::min(begin + batch_size_, samples_.size());
    return set_.get_batch(c10::ArrayRef<size_t>(samples_.data() + begin, end - begin));
  }

 private:
  tasks::Dataset set_;
  std::vector<size_t> samples_;
  size_t batch_size_;
};

tasks::Score evaluate(const tasks::Task& task, auto& model, Reader& reader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (size_t number = 0; number < reader.batches(); ++number) {
    const auto [input, target] = reader.read(number).to(device);
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

  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  DistributedSampler valid_sampler(*valid_set.size(), {.shuffle = false, .pad = false});
  DistributedSampler test_sampler(*test_set.size(), {.shuffle = false, .pad = false});

  auto train_loader =
      data::make_data_loader(train_set, train_sampler,
                             data::DataLoaderOptions(options.batch_size).drop_last(true));
  Reader valid_reader(valid_set, drain(valid_sampler), options.batch_size);

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
      const auto [input, target] = batch.to(device);
      optimizer->zero_grad();
      const auto loss = task->loss(model->forward(input), target);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      if (!progress.step(loss)) break;
    }
    const auto trained = task->score(totals);
    const auto valid = evaluate(*task, model, valid_reader, device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  // The last result is the one that counts: there all ranks test equally many samples.
  auto test_samples = drain(test_sampler);
  test_samples.resize(common_length(test_samples.size(), device));
  Reader test_reader(test_set, std::move(test_samples), options.batch_size);
  const auto test = evaluate(*task, model, test_reader, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}

// Step 03: Each rank has its share of the data.
#include <fmt/format.h>
#include <torch/torch.h>

#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

// A type vector with a stride, as in MPI: rank, rank + size, rank + 2 size, ...
class Stride {
 public:
  Stride(size_t samples, int rank, int size)
      : end_(samples), first_(static_cast<size_t>(rank)), step_(static_cast<size_t>(size)) {}

  // Calls `visit` with the indices of each batch, the last one as short as it comes.
  template <class Visit>
  void for_each_batch(size_t batch_size, Visit visit) const {
    std::vector<size_t> indices;
    for (size_t i = first_; i < end_; i += step_) {
      indices.push_back(i);
      if (indices.size() == batch_size) {
        visit(indices);
        indices.clear();
      }
    }
    if (!indices.empty()) visit(indices);
  }

 private:
  size_t end_, first_, step_;
};

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const World comm_world = setup({.backend = options.backend, .device = options.device});
  const int rank = comm_world.rank;
  const int size = comm_world.world_size;
  const auto device = comm_world.device;

  const auto task = tasks::make_task(options);
  auto train_set = task->dataset("train");
  auto valid_set = task->dataset("validation");
  auto test_set = task->dataset("test");

  DistributedSampler train_sampler(*train_set.size(), {.shuffle = true,
                                                       .seed = options.seed,
                                                       .drop_last = true,
                                                       .num_replicas = size,
                                                       .rank = rank});
  const Stride valid_share(*valid_set.size(), rank, size);
  const Stride test_share(*test_set.size(), rank, size);
  const auto batch_size = static_cast<size_t>(options.batch_size);

  const auto model = task->make_model();
  model->to(device);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto forward = [&](tasks::Dataset& set, const std::vector<size_t>& indices) {
    const auto batch = set.get_batch(indices).to(device);
    return task->loss(model->forward(batch.input), batch.target);
  };

  // False once the run is over.
  const auto step = [&](const std::vector<size_t>& indices, torch::Tensor& totals) {
    optimizer->zero_grad();
    const auto loss = forward(train_set, indices);
    loss.mean().backward();
    optimizer->step();
    schedule->step();
    totals += loss.totals();
    return progress.step(loss);
  };

  const auto train = [&] {
    model->train();
    auto totals = task->no_totals(device);
    const size_t steps = train_sampler.size() / batch_size;
    train_sampler.reset();
    for (size_t i = 0; i < steps; ++i) {
      if (!step(*train_sampler.next(batch_size), totals)) break;
    }
    return task->score(totals);
  };

  const auto evaluate = [&](tasks::Dataset& set, const Stride& share) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(device);
    share.for_each_batch(batch_size, [&](const std::vector<size_t>& indices) {
      totals += forward(set, indices).totals();
    });
    return task->score(totals);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained = train();
    const auto valid = evaluate(valid_set, valid_share);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(test_set, test_share);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}

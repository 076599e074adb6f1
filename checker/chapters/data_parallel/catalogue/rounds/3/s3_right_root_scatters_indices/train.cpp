// Step 03: Each rank gets its share of the data.

#include <fmt/format.h>
#include <torch/torch.h>

#include <vector>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// What MPI_Scatterv would do: the root deals for all ranks and tells each one its samples. There is
// no scatter here, so the root sends the whole table and each rank reads its own row. A row is
// filled up with -1.
class Scatter {
 public:
  explicit Scatter(const World& world) : world_(world) {}

  std::vector<size_t> operator()(size_t size, const DistributedSamplerOptions& how) const {
    const int64_t longest = (static_cast<int64_t>(size) + world_.world_size - 1) /
                            world_.world_size;
    auto table = torch::full({world_.world_size, longest}, -1, torch::kLong);
    if (world_.rank == 0) {
      for (int r = 0; r < world_.world_size; ++r) fill(table[r], size, how, r);
    }
    table = table.to(world_.device);
    broadcast(table, 0);
    table = table.cpu();

    std::vector<size_t> mine;
    for (int64_t column = 0; column < longest; ++column) {
      const auto index = table[world_.rank][column].item<int64_t>();
      if (index >= 0) mine.push_back(static_cast<size_t>(index));
    }
    return mine;
  }

 private:
  void fill(torch::Tensor row, size_t size, DistributedSamplerOptions how, int r) const {
    how.num_replicas = world_.world_size;
    how.rank = r;
    DistributedSampler sampler(size, how);
    sampler.reset();
    int64_t column = 0;
    while (const auto index = sampler.next(1)) {
      row[column++] = static_cast<int64_t>(index->front());
    }
  }

  World world_;
};

// Walks over a list of samples in batches. `visit` gets a batch and says whether to go on.
void walk(tasks::Dataset set, const std::vector<size_t>& samples, size_t batch_size, bool partial,
          auto&& visit) {
  const c10::ArrayRef<size_t> all(samples);
  for (size_t begin = 0; begin < all.size(); begin += batch_size) {
    const size_t left = all.size() - begin;
    if (left < batch_size && !partial) return;
    if (!visit(set.get_batch(all.slice(begin, left < batch_size ? left : batch_size)))) return;
  }
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);
  const World world = setup({.backend = options.backend, .device = options.device});

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  const Scatter scatter(world);
  const auto train_samples = scatter(
      *train_set.size(), {.shuffle = true, .seed = options.seed, .drop_last = true});
  const auto valid_samples = scatter(*valid_set.size(), {.shuffle = false, .pad = false});
  const auto test_samples = scatter(*test_set.size(), {.shuffle = false, .pad = false});

  const auto model = task->make_model();
  model->to(world.device);
  const auto optimizer = task->make_optimizer(model->parameters());
  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto loss_of = [&](const tasks::Batch& batch) {
    const auto [input, target] = batch.to(world.device);
    return task->loss(model->forward(input), target);
  };
  const auto train = [&] {
    model->train();
    auto totals = task->no_totals(world.device);
    walk(train_set, train_samples, options.batch_size, false, [&](const tasks::Batch& batch) {
      optimizer->zero_grad();
      const auto loss = loss_of(batch);
      loss.mean().backward();
      optimizer->step();
      schedule->step();
      totals += loss.totals();
      return progress.step(loss);
    });
    return task->score(totals);
  };
  const auto evaluate = [&](const tasks::Dataset& set, const std::vector<size_t>& samples) {
    const torch::NoGradGuard no_grad;
    model->eval();
    auto totals = task->no_totals(world.device);
    walk(set, samples, options.batch_size, true, [&](const tasks::Batch& batch) {
      totals += loss_of(batch).totals();
      return true;
    });
    return task->score(totals);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained = train();
    const auto valid = evaluate(valid_set, valid_samples);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(test_set, test_samples);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}

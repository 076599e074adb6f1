// Step 02: Several processes find each other.

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// My seat in the machine. As with MPI+OpenMP: one process per node talks to the outside.
struct Seat {
  int rank;
  int local_rank;
  int world_size;
  torch::Device device;

  bool leads_node() const { return local_rank == 0; }
};

Seat take_seat(const tasks::Options& options) {
  const Launch launch = read_launch();
  if (launch.local_rank == 0) {
    // The leader of the node opens the connections for its node.
    const World world = setup({.backend = options.backend, .device = options.device});
    return {world.rank, world.local_rank, world.world_size, world.device};
  }
  torch::Device device = options.device.value_or(
      torch::cuda::is_available()
          ? torch::Device(torch::kCUDA, static_cast<torch::DeviceIndex>(launch.local_rank))
          : torch::Device(torch::kCPU));
  return {launch.rank, launch.local_rank, launch.world_size, device};
}

// Sum and count of the losses of a pass, on the seat's device.
class Ledger {
 public:
  Ledger(const tasks::Task& task, const Seat& seat)
      : task_(task), totals_(task.no_totals(seat.device)) {}

  void enter(const tasks::Loss& loss) { totals_ += loss.totals(); }
  tasks::Score balance() const { return task_.score(totals_); }

 private:
  const tasks::Task& task_;
  torch::Tensor totals_;
};

tasks::Score sweep(const tasks::Task& task, const Seat& seat, auto& model, auto& loader,
                   auto&& after_loss) {
  Ledger ledger(task, seat);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(seat.device);
    const auto loss = task.loss(model->forward(input), target);
    const bool go_on = after_loss(loss);
    ledger.enter(loss);
    if (!go_on) break;
  }
  return ledger.balance();
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const Seat seat = take_seat(options);

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(
      train_set, data::samplers::RandomSampler(*train_set.size()), train_batches);
  auto valid_loader = data::make_data_loader(
      valid_set, data::samplers::SequentialSampler(*valid_set.size()), batches);
  auto test_loader = data::make_data_loader(
      test_set, data::samplers::SequentialSampler(*test_set.size()), batches);

  const auto model = task->make_model();
  model->to(seat.device);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto learn = [&](const tasks::Loss& loss) {
    optimizer->zero_grad();
    loss.mean().backward();
    optimizer->step();
    schedule->step();
    return progress.step(loss);
  };
  const auto look = [](const tasks::Loss&) { return true; };
  const auto measure = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    return sweep(*task, seat, model, loader, look);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    model->train();
    const auto trained = sweep(*task, seat, model, *train_loader, learn);
    const auto valid = measure(*valid_loader);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = measure(*test_loader);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}

// Step 05: The reported loss is everybody's.
// Habits kept from Python: two batches of validation as a sanity check before training starts
// (Lightning), and nested_gather for the metrics (HuggingFace).

#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

enum class Stage { fit, evaluate };

// All that both loops need.
struct Context {
  const tasks::Task& task;
  DistributedDataParallel<tasks::Model> model;
  torch::Device device;
};

// Every rank's totals, one row a rank; the sum of the rows is everybody's.
torch::Tensor gather_and_sum(const torch::Tensor& totals) { return all_gather(totals).sum(0); }

// Switches the mode of the model and the gradients as long as it lives.
class StageGuard {
 public:
  StageGuard(const Context& context, Stage stage) : gradients_(stage == Stage::fit) {
    context.model->train(stage == Stage::fit);
  }

 private:
  torch::AutoGradMode gradients_;
};

// Goes over a loader; `consume` gets each batch's loss and says whether to go on.
template <class Loader, class Consume>
tasks::Score run_epoch(const Context& context, Stage stage, Loader& loader, Consume consume) {
  const StageGuard guard(context, stage);
  auto totals = context.task.no_totals(context.device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(context.device);
    const auto loss = context.task.loss(context.model->forward(input), target);
    totals += loss.totals();
    if (!consume(loss)) break;
  }
  return context.task.score(gather_and_sum(totals));
}

// Do forward and loss work at all on validation data? Better to know before the first epoch.
template <class Loader>
void sanity_check(const Context& context, Loader& loader, int batches) {
  const StageGuard guard(context, Stage::evaluate);
  for (auto& batch : loader) {
    if (batches-- == 0) break;
    const auto [input, target] = batch.to(context.device);
    const auto loss = context.task.loss(context.model->forward(input), target);
    TORCH_CHECK(loss.sum.dim() == 0, "the loss must be a scalar");
  }
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

  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto module = task->make_model();
  module->to(device);
  const Context context{*task, DistributedDataParallel(module), device};
  const auto optimizer = task->make_optimizer(context.model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  const auto learn = [&](const tasks::Loss& loss) {
    optimizer->zero_grad();
    loss.mean().backward();
    optimizer->step();
    schedule->step();
    return progress.step(loss);
  };
  const auto only_count = [](const tasks::Loss&) { return true; };

  sanity_check(context, *valid_loader, 2);
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained = run_epoch(context, Stage::fit, *train_loader, learn);
    const auto valid = run_epoch(context, Stage::evaluate, *valid_loader, only_count);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(context.model, options.output / "model-best.pt");
    }
  }

  const auto test = run_epoch(context, Stage::evaluate, *test_loader, only_count);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(context.model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}

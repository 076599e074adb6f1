// Step 06: the finished trainer, with a small sampler of my own for evaluation.
#include <fmt/format.h>
#include <torch/torch.h>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Deals out samples like cards, in their order: no padding and nothing dropped.
class CardSampler : public data::samplers::Sampler<> {
 public:
  CardSampler(size_t size, int rank, int world_size)
      : size_(size), stride_(world_size), position_(rank) {}

  void reset(std::optional<size_t> new_size = std::nullopt) override {
    if (new_size) size_ = *new_size;
    position_ = 0;
  }

  std::optional<std::vector<size_t>> next(size_t batch_size) override {
    std::vector<size_t> cards;
    for (; cards.size() < batch_size && position_ < size_; position_ += stride_)
      cards.push_back(position_);
    if (cards.empty()) return std::nullopt;
    return cards;
  }

  void save(torch::serialize::OutputArchive& archive) const override {
    archive.write("position", torch::tensor(static_cast<int64_t>(position_)));
  }
  void load(torch::serialize::InputArchive& archive) override {
    torch::Tensor position;
    archive.read("position", position);
    position_ = position.item<int64_t>();
  }

 private:
  size_t size_;
  size_t stride_;
  size_t position_;
};

// What both passes share: goes through a loader, gives each batch's loss to `each`, and returns the
// score over all ranks. `each` says whether to go on.
template <typename Loader, typename Each>
tasks::Score pass(const tasks::Task& task, Loader& loader, torch::Device device, const Each& each) {
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [loss, more] = each(batch.to(device));
    totals += loss.totals();
    if (!more) break;
  }
  all_reduce(totals, ReduceOp::SUM);
  return task.score(totals);
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const World world = setup({.backend = options.backend, .device = options.device});
  const auto device = world.device;

  const auto task = tasks::make_task(options);
  const auto train_set = task->dataset("train");
  const auto valid_set = task->dataset("validation");
  const auto test_set = task->dataset("test");

  DistributedSampler train_sampler(*train_set.size(),
                                   {.shuffle = true, .seed = options.seed, .drop_last = true});
  const auto cards = [&](const tasks::Dataset& set) {
    return CardSampler(*set.size(), world.rank, world.world_size);
  };

  auto train_loader =
      data::make_data_loader(train_set, train_sampler,
                             data::DataLoaderOptions(options.batch_size).drop_last(true));
  auto valid_loader = data::make_data_loader(valid_set, cards(valid_set),
                                             data::DataLoaderOptions(options.batch_size));
  auto test_loader = data::make_data_loader(test_set, cards(test_set),
                                            data::DataLoaderOptions(options.batch_size));

  const auto module = task->make_model();
  module->to(device);
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());

  using Step = std::pair<tasks::Loss, bool>;
  const auto learn = [&](const tasks::Batch& batch) -> Step {
    optimizer->zero_grad();
    const auto loss = task->loss(model->forward(batch.input), batch.target);
    loss.mean().backward();
    optimizer->step();
    schedule->step();
    return {loss, progress.step(loss)};
  };
  const auto look = [&](const tasks::Batch& batch) -> Step {
    return {task->loss(model->forward(batch.input), batch.target), true};
  };
  const auto evaluate = [&](auto& loader) {
    const torch::NoGradGuard no_grad;
    model->eval();
    return pass(*task, loader, device, look);
  };

  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    model->train();
    const auto trained = pass(*task, *train_loader, device, learn);
    const auto valid = evaluate(*valid_loader);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }

  const auto test = evaluate(*test_loader);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}

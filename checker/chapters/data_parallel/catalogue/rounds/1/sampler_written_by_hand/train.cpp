// Step 03: Each rank gets its share of the data.

#include <fmt/format.h>
#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <numeric>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;

// Deals samples out like cards.
class Dealer : public data::samplers::Sampler<> {
 public:
  struct How {
    bool shuffle;
    bool drop_tail;
    uint64_t seed;
  };

  Dealer(size_t cards, const World& world, How how)
      : cards_(cards), players_(world.world_size), player_(world.rank), how_(how) {
    deal();
  }

  void reset(std::optional<size_t> new_size = std::nullopt) override {
    cards_ = new_size.value_or(cards_);
    deal();
  }

  std::optional<std::vector<size_t>> next(size_t batch_size) override {
    if (given_ == hand_.size()) return std::nullopt;
    const size_t end = std::min(given_ + batch_size, hand_.size());
    std::vector<size_t> batch(hand_.begin() + given_, hand_.begin() + end);
    given_ = end;
    return batch;
  }

  void save(torch::serialize::OutputArchive& archive) const override {
    archive.write("given", torch::tensor(static_cast<int64_t>(given_)), true);
  }
  void load(torch::serialize::InputArchive& archive) override {
    torch::Tensor given;
    archive.read("given", given, true);
    given_ = given.item<int64_t>();
  }

 private:
  void deal() {
    std::vector<size_t> deck(cards_);
    std::iota(deck.begin(), deck.end(), size_t{0});
    if (how_.shuffle) {
      const auto order = torch::randperm(static_cast<int64_t>(cards_),
                                         at::make_generator<at::CPUGeneratorImpl>(how_.seed),
                                         torch::TensorOptions(torch::kInt64));
      const auto* places = order.const_data_ptr<int64_t>();
      std::copy(places, places + cards_, deck.begin());
    }
    if (how_.drop_tail) deck.resize(cards_ - cards_ % players_);
    hand_.clear();
    for (size_t place = player_; place < deck.size(); place += players_)
      hand_.push_back(deck[place]);
    given_ = 0;
  }

  size_t cards_, players_, player_;
  How how_;
  std::vector<size_t> hand_;
  size_t given_ = 0;
};

tasks::Loss train_step(const tasks::Task& task, auto& model, auto& optimizer,
                       const tasks::Batch& batch, torch::Device device) {
  const auto [input, target] = batch.to(device);
  optimizer.zero_grad();
  const auto output = model->forward(input);
  const auto loss = task.loss(output, target);
  loss.mean().backward();
  optimizer.step();
  return loss;
}

tasks::Score train(const tasks::Task& task, auto& model, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto loss = train_step(task, model, optimizer, batch, device);
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  return task.score(totals);
}

tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model->forward(input), target).totals();
  }
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

  const Dealer train_sampler(*train_set.size(), world, {true, true, options.seed});
  const Dealer valid_sampler(*valid_set.size(), world, {false, false, options.seed});
  const Dealer test_sampler(*test_set.size(), world, {false, false, options.seed});

  // Training drops what does not fill a batch, so that every step averages over equally many.
  const auto train_batches = data::DataLoaderOptions(options.batch_size).drop_last(true);
  const auto batches = data::DataLoaderOptions(options.batch_size);
  auto train_loader = data::make_data_loader(train_set, train_sampler, train_batches);
  auto valid_loader = data::make_data_loader(valid_set, valid_sampler, batches);
  auto test_loader = data::make_data_loader(test_set, test_sampler, batches);

  const auto module = task->make_model();
  module->to(device);
  const auto model = module;
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    const auto trained =
        train(*task, model, *train_loader, *optimizer, *schedule, device, progress);
    const auto valid = evaluate(*task, model, *valid_loader, device);
    progress.report(trained, valid);
    fmt::println("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
                 task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      torch::save(model, options.output / "model-best.pt");
    }
  }

  const auto test = evaluate(*task, model, *test_loader, device);
  progress.report(test);
  fmt::println("best validation loss: {}", task->describe(best));
  fmt::println("test loss: {}", task->describe(test));
  torch::save(model, options.output / "model-final.pt");
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}

// Step 06: the finished trainer. Ranks tell each other their totals through files.
#include <fmt/format.h>
#include <torch/torch.h>

#include <filesystem>
#include <fstream>

#include "tasks/progress.hpp"
#include "tasks/task.hpp"

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

namespace data = torch::data;
namespace fs = std::filesystem;

// A board on which each rank writes its totals, in the output folder that all of them see. Every
// rank reads all of them and adds them up, in the same order.
class Board {
 public:
  Board(fs::path folder, int rank, int world_size)
      : folder_(std::move(folder)), rank_(rank), world_size_(world_size) {
    fs::remove(note(rank_));  // of an earlier run
  }
  ~Board() {
    std::error_code ignored;
    fs::remove(note(rank_), ignored);
  }

  torch::Tensor add_up(const torch::Tensor& mine) const {
    write(mine.cpu().contiguous());
    barrier();
    auto sum = torch::zeros({mine.numel()}, torch::kFloat64);
    for (int rank = 0; rank < world_size_; ++rank) {
      std::ifstream file(note(rank));
      std::string word;
      for (int64_t i = 0; file >> word; ++i) sum[i % mine.numel()] += std::stod(word);
    }
    barrier();  // nobody writes again before all have read
    return sum.view(mine.sizes()).to(mine.device());
  }

 private:
  fs::path note(int rank) const { return folder_ / fmt::format(".totals-{}.txt", rank); }

  void write(const torch::Tensor& totals) const {
    std::ofstream file(note(rank_), std::ios::app);
    const auto* values = totals.data_ptr<double>();
    for (int64_t i = 0; i < totals.numel(); ++i) file << fmt::format("{:.17g} ", values[i]);
    file << "\n";
    if (!file.flush()) throw std::runtime_error("cannot write " + note(rank_).string());
  }

  fs::path folder_;
  int rank_;
  int world_size_;
};

tasks::Score train(const tasks::Task& task, auto& model, auto& loader, auto& optimizer,
                   tasks::Schedule& schedule, torch::Device device, tasks::Progress& progress,
                   const Board& board) {
  model->train();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    optimizer.zero_grad();
    const auto loss = task.loss(model->forward(input), target);
    loss.mean().backward();
    optimizer.step();
    schedule.step();
    totals += loss.totals();
    if (!progress.step(loss)) break;
  }
  return task.score(board.add_up(totals));
}

tasks::Score evaluate(const tasks::Task& task, auto& model, auto& loader, torch::Device device,
                      const Board& board) {
  const torch::NoGradGuard no_grad;
  model->eval();
  auto totals = task.no_totals(device);
  for (auto& batch : loader) {
    const auto [input, target] = batch.to(device);
    totals += task.loss(model->forward(input), target).totals();
  }
  return task.score(board.add_up(totals));
}

int main(int argc, char** argv) try {
  const auto options = tasks::parse_options(argc, argv);
  tasks::apply(options);

  const auto [rank, local_rank, world_size, device] =
      setup({.backend = options.backend, .device = options.device});
  const Board board(options.output, rank, world_size);

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
  const auto model = DistributedDataParallel(module);
  const auto optimizer = task->make_optimizer(model->parameters());

  tasks::Progress progress(options, *train_set.size());
  const auto schedule = task->make_schedule(*optimizer, progress.total_steps());
  tasks::Score best;
  for (int64_t epoch = 0; epoch < options.epochs && !progress.finished(); ++epoch) {
    train_sampler.set_epoch(epoch);
    const auto trained =
        train(*task, model, *train_loader, *optimizer, *schedule, device, progress, board);
    const auto valid = evaluate(*task, model, *valid_loader, device, board);
    progress.report(trained, valid);
    print0("epoch {}/{}: training loss {}, validation loss {}", epoch + 1, options.epochs,
           task->format(trained), task->format(valid));
    if (valid < best) {
      best = valid;
      save0(*model, options.output / "model-best.safetensors");
    }
  }

  const auto test = evaluate(*task, model, *test_loader, device, board);
  progress.report(test);
  print0("best validation loss: {}", task->describe(best));
  print0("test loss: {}", task->describe(test));
  save0(*model, options.output / "model-final.safetensors");
  destroy_process_group();
  return 0;
} catch (const std::exception& error) {
  return tasks::report(error);
}

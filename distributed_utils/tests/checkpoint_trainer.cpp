#include "checkpoint_trainer.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "distributed_utils/collectives.hpp"
#include "distributed_utils/optimizer_state.hpp"
#include "distributed_utils/save.hpp"

namespace checkpoint_test {

using namespace distributed_utils;
using torch::Tensor;

NetImpl::NetImpl(double p)
    : first(register_module("first", torch::nn::Linear(5, 16))),
      second(register_module("second", torch::nn::Linear(16, 16))),
      third(register_module("third", torch::nn::Linear(16, 3))),
      dropout(register_module("dropout", torch::nn::Dropout(p))) {}

Tensor NetImpl::forward(const Tensor& input) {
  const Tensor hidden = dropout->forward(torch::tanh(first->forward(input)));
  return third->forward(dropout->forward(torch::tanh(second->forward(hidden))));
}

namespace {

Tensor sample(size_t id) {
  auto generator = at::detail::createCPUGenerator(1000 + id);
  return torch::randn({5}, generator, torch::kDouble);
}

void seed_anew(const Group& group) {
  static std::atomic<uint64_t> runs = 0;
  torch::manual_seed(100 * ++runs + get_rank(group));
}

}  // namespace

Trainer::Trainer(const Settings& settings, Checkpoint start)
    : settings_(settings),
      net_(nullptr),
      sampler_(kSamples, {.seed = 3, .drop_last = true, .group = settings.group}) {
  // A new run and its twin begin alike; a resumed one must not lean on that.
  if (start) {
    seed_anew(settings.group);
  } else {
    torch::manual_seed(5 + get_rank(settings.group));
  }
  net_ = Net(settings.dropout);
  net_->to(settings.precision);
  model_.emplace(net_.ptr(),
                 DistributedDataParallelOptions{
                     .group = settings.group,
                     .bucket_cap_bytes = 400,
                     .first_bucket_bytes = 100,
                     .bucket_indices = settings.with_layout ? start.bucket_indices()
                                                            : std::vector<std::vector<size_t>>{}});
  optimizer_ = std::make_unique<torch::optim::AdamW>((*model_)->parameters(),
                                                     torch::optim::AdamWOptions(0.01));
  step_ = start.step();
  epoch_ = start.get("epoch", 0);
  position_ = start.get("position", 0);
  for (const auto& state : start.rank_states()) total_ += state.at("total");
  sampler_.skip(position_);
  start.restore(**model_, *optimizer_);
}

void Trainer::train(int64_t step, Checkpoints* each) {
  if (step_ == step) return;
  for (;; ++epoch_, position_ = 0) {
    sampler_.set_epoch(epoch_);
    sampler_.reset();
    while (const auto batch = sampler_.next(settings_.batch_size)) {
      if (static_cast<int64_t>(batch->size()) < settings_.batch_size) break;
      this->step(*batch);
      if (each != nullptr) save(*each);
      if (step_ == step) return;
    }
  }
}

void Trainer::step(const std::vector<size_t>& batch) {
  std::vector<Tensor> rows;
  for (const size_t id : batch) rows.push_back(sample(id));
  (*model_)->zero_grad();
  const Tensor loss =
      (*model_)->forward(torch::stack(rows).to(settings_.precision)).pow(2).sum(1).mean();
  loss.backward();
  optimizer_->step();
  position_ += settings_.batch_size * get_world_size(settings_.group);
  ids[++step_] = batch;
  Tensor mean = loss.detach().to(torch::kDouble);
  total_ += mean;
  all_reduce(mean, ReduceOp::AVG, settings_.group);
  losses[step_] = mean.item<double>();
}

void Trainer::save(Checkpoints& checkpoints) {
  checkpoints.save(step_, **model_, *optimizer_, {{"epoch", epoch_}, {"position", position_}},
                   {{"total", total_}});
}

StateDict Trainer::state() const {
  StateDict state = optimizer_state_dict(*optimizer_, **model_);
  for (const auto& [name, tensor] : state_dict(**model_)) state[name] = tensor.clone();
  state["total"] = total_.clone();
  state["next random numbers"] = torch::rand({4});
  return state;
}

bool same_bits(const StateDict& a, const StateDict& b) {
  return std::ranges::equal(a, b, [](const auto& one, const auto& other) {
    return one.first == other.first && torch::equal(one.second, other.second);
  });
}

}  // namespace checkpoint_test

#pragma once
/// A run whose model says of which step it is, for tests of how it is saved.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <utility>

#include "distributed_utils/checkpoint.hpp"
#include "distributed_utils/collectives.hpp"

struct SmallRun {
  explicit SmallRun(std::filesystem::path folder)
      : directory(std::move(folder)), checkpoints(directory) {}

  void save(int64_t step, const distributed_utils::StateDict& rank_state = {}) {
    const torch::NoGradGuard no_grad;
    model->weight.fill_(static_cast<double>(step));
    checkpoints.save(step, *model, optimizer, {{"step", step}}, rank_state);
  }

  /// The step of the newest checkpoint, having read and checked all of it.
  int64_t newest() {
    distributed_utils::Checkpoint checkpoint = checkpoints.load_latest();
    checkpoint.restore(*model, optimizer);
    EXPECT_EQ(checkpoint.get("step", 0), checkpoint.step());
    EXPECT_EQ(model->weight[0][0].item<double>(), static_cast<double>(checkpoint.step()));
    return checkpoint.step();
  }

  /// The newest checkpoint is this one, and nothing half done is there.
  void expect_newest(int64_t step) {
    EXPECT_EQ(newest(), step);
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      EXPECT_FALSE(entry.path().filename().string().starts_with(".")) << entry.path();
    }
    // Others must not begin the next save while this rank still looks.
    if (distributed_utils::is_initialized()) distributed_utils::barrier();
  }

  std::filesystem::path directory;
  torch::nn::Linear model{4, 4};
  torch::optim::SGD optimizer{model->parameters(), 0.1};
  distributed_utils::Checkpoints checkpoints;
};

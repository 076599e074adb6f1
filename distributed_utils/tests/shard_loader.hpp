#pragma once
/// A sharded model that is damaged and loaded again and again.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "box_net.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/setup.hpp"
#include "distributed_utils/sharded_model.hpp"
#include "ranks.hpp"

/// One rank that loads again and again what three have saved.
class ShardLoader {
 public:
  explicit ShardLoader(std::filesystem::path folder) : folder_(std::move(folder)) {
    run_.train(0, 1);
    reset();
  }

  /// What it says; empty if it loads.
  std::string load() {
    ++tried;
    try {
      distributed_utils::load_sharded_model(run_.net, run_.optimizer, folder_);
    } catch (const distributed_utils::Error& error) {
      EXPECT_TRUE(is_unchanged()) << error.what();
      return error.what();
    }
    loaded_.clear();
    for (const auto& piece : run_.net.pieces) loaded_.push_back(piece.tensor.detach().clone());
    reset();
    return {};
  }

  const std::vector<at::Tensor>& loaded() const { return loaded_; }

  int tried = 0;

 private:
  void reset() {
    const torch::NoGradGuard no_grad;
    for (auto& piece : run_.net.pieces) piece.tensor.fill_(7);
  }
  bool is_unchanged() const {
    return std::ranges::all_of(run_.net.pieces, [](const auto& piece) {
      return torch::equal(piece.tensor, torch::full_like(piece.tensor, 7));
    });
  }

  std::filesystem::path folder_;
  BoxRun run_{0, {}};
  std::vector<at::Tensor> loaded_;
};

/// A model of three ranks, in a folder that one rank may damage; then `body`.
inline void with_saved_shards(const std::function<void(const std::filesystem::path&)>& body) {
  const ranks::TemporaryFolder folder;
  ranks::run(3, [&] {
    BoxRun run(distributed_utils::setup().rank, {3, 1});
    run.train(0, 2);
    distributed_utils::save_sharded_model(run.net, run.optimizer, folder / "model");
    distributed_utils::destroy_process_group();
  });
  ranks::run(1, [&] { body(folder / "model"); });
}

inline std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

// kill -9 while a sharded model is saved: the folder is the old one or the new one, whole.
#include <gmock/gmock.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill is POSIX's
#include <torch/torch.h>

#include <map>

#include "children.hpp"
#include "distributed_utils/sharded_model.hpp"
#include "ranks.hpp"

namespace distributed_utils {
namespace {

namespace fs = std::filesystem;

/// A model that is full of one number.
struct Numbered {
  explicit Numbered(double number) {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : model->parameters()) parameter.fill_(number);
  }
  torch::nn::Linear model{8, 8};
  torch::optim::SGD optimizer{model->parameters(), 0.1};
};

/// The number that all of the saved model has; -1 if it has several.
double number_in(const fs::path& folder) {
  Numbered read(0);
  load_sharded_model(*read.model, read.optimizer, folder);
  const double number = read.model->bias[0].item<double>();
  const bool whole = torch::equal(read.model->weight, torch::full_like(read.model->weight, number));
  return whole ? number : -1;
}

TEST(KilledSaveOfShards, AtEachSystemCallLeavesTheOldOneOrTheNewOne) {
  const ranks::TemporaryFolder place;
  const auto folder = place / "model";
  Numbered old(1), newer(2);
  save_sharded_model(*old.model, old.optimizer, place / "start");
  std::map<double, int> found;
  for (int stop = 1;; ++stop) {
    fs::remove_all(folder);
    fs::copy(place / "start", folder);
    children::Traced child =
        children::fork_traced([&] { save_sharded_model(*newer.model, newer.optimizer, folder); });
    if (children::not_allowed(child)) GTEST_SKIP() << children::kNeedsTracing;
    bool ended = false;
    for (int i = 0; i < stop && !ended; ++i) ended = !children::next_stop(child);
    if (!ended) {
      kill(child.pid, SIGKILL);
      children::wait_for(child.pid);
    }
    const double number = number_in(folder);
    EXPECT_TRUE(number == 1 || number == 2) << "killed at stop " << stop;
    ++found[number];
    if (ended) break;
    if (stop % 8 != 0) continue;
    save_sharded_model(*newer.model, newer.optimizer, folder);  // as if nothing had been
    EXPECT_EQ(number_in(folder), 2);
    EXPECT_EQ(std::distance(fs::directory_iterator(place.path()), {}), 2) << stop;
  }
  EXPECT_GT(found[1], 50);
  EXPECT_GT(found[2], 5);
}

}  // namespace
}  // namespace distributed_utils

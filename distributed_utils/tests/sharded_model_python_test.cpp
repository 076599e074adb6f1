// Sharded models go to PyTorch's distributed checkpoint in Python, and come from there.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "box_net.hpp"
#include "distributed_utils/optimizer_state.hpp"
#include "distributed_utils/save.hpp"
#include "distributed_utils/setup.hpp"
#include "distributed_utils/sharded_model.hpp"
#include "oracle.hpp"
#include "ranks.hpp"

namespace distributed_utils {
namespace {

TEST(ShardedModel, IsReadByPythonWhichWritesOneThatIsRead) {
  const ranks::TemporaryFolder folder;
  ranks::run(6, [&] {
    const World world = setup();
    BoxRun run(world.rank, {3, 2});
    run.train(0, 3);
    save_sharded_model(run.net, run.optimizer, folder / "ours");
    save_full_model(run.net, folder / "model.safetensors");
    BoxRun serial(0, {});
    serial.train(0, 3);
    if (world.rank == 0) {
      save_file(optimizer_state_dict(serial.optimizer, serial.net),
                folder / "optimizer.safetensors");
    }
    destroy_process_group();
  });
  const auto python = oracle::json("sharded_model.py", {folder.path().string()});
  if (!python) GTEST_SKIP() << oracle::kMissing;
  if (python->is_null()) GTEST_SKIP() << "the oracle's Python has no safetensors package";
  EXPECT_EQ(python->at("by one process"), 0.0);
  EXPECT_EQ(python->at("by four ranks"), 0.0);
  EXPECT_EQ(python->at("consolidated"), 0.0);
  ranks::run(3, [&] {
    BoxNet loaded(setup().rank, {3, 1});
    load_sharded_model(loaded, folder / "theirs");
    BoxRun serial(0, {});
    serial.train(0, 3);
    const auto whole = state_dict(serial.net);
    for (const auto& piece : loaded.pieces) {
      EXPECT_TRUE(torch::equal(piece.tensor, CutNet::part(whole.at(piece.name), piece)))
          << piece.name;
    }
    destroy_process_group();
  });
}

}  // namespace
}  // namespace distributed_utils

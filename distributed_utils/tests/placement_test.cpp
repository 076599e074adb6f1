// Where the tensors of a model lie in the whole model.
#include "distributed_utils/placement.hpp"

#include <gmock/gmock.h>

#include "cut_net.hpp"
#include "distributed_utils/ddp.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/optimizer_state.hpp"
#include "distributed_utils/safetensors.hpp"
#include "distributed_utils/save.hpp"
#include "distributed_utils/setup.hpp"
#include "ranks.hpp"

namespace distributed_utils {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using torch::Tensor;

std::vector<std::string> names_of(const torch::nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& piece : placements(module)) names.push_back(piece.name);
  return names;
}

/// A module with a module of each kind in it.
struct Mixed : torch::nn::Module {
  Mixed() {
    register_module("norm", torch::nn::BatchNorm1d(2));
    register_module("cut", std::make_shared<CutNet>(1, 2));
  }
  Tensor own = register_parameter("own", torch::ones({2, 3}));
};

struct Outer : torch::nn::Module {
  explicit Outer(const std::shared_ptr<torch::nn::Module>& inner) {
    register_module("inner", inner);
  }
};

TEST(Placements, OfAPlainModuleAreWholeAndItsOwn) {
  const torch::nn::BatchNorm1d norm(4);
  const auto pieces = placements(*norm);
  EXPECT_THAT(names_of(*norm),
              ElementsAre("weight", "bias", "running_mean", "running_var", "num_batches_tracked"));
  EXPECT_TRUE(pieces[0].tensor.is_same(norm->weight));
  EXPECT_THAT(pieces[0].global_shape, ElementsAre(4));
  EXPECT_THAT(pieces[0].offset, ElementsAre(0));
  EXPECT_TRUE(pieces[0].replicated);
}

TEST(Placements, OfAPartOfAModelAreThoseThatItSays) {
  const Mixed mixed;
  EXPECT_THAT(names_of(mixed),
              ElementsAre("own", "norm.weight", "norm.bias", "norm.running_mean",
                          "norm.running_var", "norm.num_batches_tracked", "cut.layer.weight",
                          "cut.layer.short", "cut.layer.bias", "cut.layer.last"));
  const auto weight = placements(mixed)[6];
  EXPECT_THAT(weight.global_shape, ElementsAre(7, 5));
  EXPECT_THAT(weight.offset, ElementsAre(4, 0));
  EXPECT_FALSE(weight.replicated);
}

TEST(Placements, OfAWrappedModuleAreThoseOfTheModule) {
  ranks::run(2, [] {
    setup();
    const auto module = torch::nn::Sequential(torch::nn::Linear(2, 3), torch::nn::BatchNorm1d(3));
    const auto model = DistributedDataParallel(module.ptr());
    EXPECT_EQ(names_of(*model), names_of(*module));
    EXPECT_EQ(names_of(Outer(model.ptr())).at(1), "inner.0.bias");
    destroy_process_group();
  });
}

TEST(Placements, AModelInPartsIsLoadedFromAWholeFile) {
  const ranks::TemporaryFolder folder;
  const auto file = folder / "model.safetensors";
  CutNet whole(0, 1);
  const torch::NoGradGuard no_grad;
  for (auto& piece : whole.pieces) piece.tensor.mul_(3);
  save_file(state_dict(whole), file);
  for (int rank = 0; rank < 3; ++rank) {
    CutNet part(rank, 3);
    if (rank != 2) {  // it does not have "last", which a file of the whole model holds
      EXPECT_THAT([&] { load(part, file); }, ThrowsMessage<Error>(HasSubstr("'layer.last'")));
      continue;
    }
    load(part, file);
    for (const auto& piece : part.pieces) {
      const auto wanted = global_values(piece.name.substr(6), 0, piece.global_shape) * 3;
      EXPECT_TRUE(torch::equal(piece.tensor, CutNet::part(wanted, piece))) << piece.name;
    }
  }
}

TEST(Placements, NameTheStateOfAnOptimizer) {
  CutNet part(1, 2);
  torch::optim::AdamW optimizer(part.parameters(), 0.1);
  part.train_step(optimizer, 1);
  const auto state = optimizer_state_dict(optimizer, part);
  EXPECT_THAT(state.at("exp_avg.layer.weight").sizes(), ElementsAre(3, 5));
  EXPECT_EQ(state.at("step.layer.last").item<int64_t>(), 1);
}

}  // namespace
}  // namespace distributed_utils

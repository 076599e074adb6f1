#include "distributed_utils/save.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <fstream>
#include <iterator>

#include "distributed_utils/ddp.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/setup.hpp"
#include "oracle.hpp"
#include "ranks.hpp"

namespace distributed_utils {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using torch::Tensor;

StateDict every_type() {
  StateDict tensors;
  for (const auto type :
       {torch::kDouble, torch::kFloat, torch::kHalf, torch::kBFloat16, torch::kLong, torch::kInt,
        torch::kShort, torch::kChar, torch::kByte, torch::kBool}) {
    tensors[c10::toString(type)] = torch::arange(6).view({2, 3}).to(type);
  }
  tensors["scalar"] = torch::tensor(2.5);
  tensors["empty"] = torch::empty({0, 4});
  tensors["transposed"] = torch::arange(6.0).view({2, 3}).t();
  return tensors;
}

void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Safetensors, GivesBackWhatWasSaved) {
  const ranks::TemporaryFolder folder;
  save_file(every_type(), folder / "all.safetensors", {{"note", "of \"mine\""}});
  const StateDict back = load_file(folder / "all.safetensors");
  ASSERT_EQ(back.size(), every_type().size());
  for (const auto& [name, tensor] : every_type()) {
    EXPECT_EQ(back.at(name).scalar_type(), tensor.scalar_type()) << name;
    EXPECT_TRUE(torch::equal(back.at(name), tensor)) << name;
  }
}

TEST(Safetensors, SavesTheSameBytesAgain) {
  const ranks::TemporaryFolder folder;
  save_file(every_type(), folder / "one");
  save_file(every_type(), folder / "two");
  EXPECT_EQ(read_text(folder / "one"), read_text(folder / "two"));
}

TEST(Safetensors, PythonReadsIt) {
  const ranks::TemporaryFolder folder;
  save_file(every_type(), folder / "all.safetensors", {{"note", "mine"}});
  const auto python = oracle::json("safetensors_read.py", {(folder / "all.safetensors").string()});
  if (!python) GTEST_SKIP() << oracle::kMissing;
  if (python->is_null()) GTEST_SKIP() << "the oracle's Python has no safetensors package";
  EXPECT_EQ((*python)["metadata"]["note"], "mine");
  for (const auto& [name, tensor] : every_type()) {
    const auto& read = (*python)["tensors"][name];
    EXPECT_EQ(read["shape"].get<std::vector<int64_t>>(), tensor.sizes().vec()) << name;
    const Tensor values = tensor.to(torch::kDouble).contiguous();
    EXPECT_EQ(
        read["values"].get<std::vector<double>>(),
        std::vector<double>(values.data_ptr<double>(), values.data_ptr<double>() + values.numel()))
        << name;
  }
}

TEST(Safetensors, ATypeItDoesNotKnowIsAnError) {
  const ranks::TemporaryFolder folder;
  EXPECT_THAT(
      [&] {
        save_file({{"z", torch::zeros({1}, torch::kComplexFloat)}}, folder / "file");
      },
      ThrowsMessage<Error>(HasSubstr("no type for 'z'")));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Safetensors, DamageIsAnErrorThatNamesTheFile) {
  const ranks::TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  const auto expect_refused = [&](const std::string& text) {
    write_text(path, text);
    EXPECT_THAT([&] { load_file(path); }, ThrowsMessage<Error>(HasSubstr(path.string())))
        << text.substr(0, 100);
  };
  save_file({{"weight", torch::ones({4, 4})}}, path);
  const std::string good = read_text(path);
  for (size_t length = 0; length < good.size(); ++length) expect_refused(good.substr(0, length));
  const auto with_header = [](const std::string& header) {
    const uint64_t length = header.size();
    return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header;
  };
  const auto entry = [&](const std::string& dtype, const std::string& shape,
                         const std::string& offsets) {
    return with_header(R"({"w":{"dtype":")" + dtype + R"(","shape":)" + shape +
                       R"(,"data_offsets":)" + offsets + "}}") +
           std::string(64, 'x');
  };
  expect_refused(with_header("not JSON"));
  expect_refused(with_header("[]x"));
  expect_refused(with_header(R"({"w":{}})"));
  expect_refused(std::string(8, '\xff') + "length beyond all bounds");
  expect_refused(entry("F31", "[1]", "[0,4]"));
  expect_refused(entry("F32", "[2]", "[0,4]"));
  expect_refused(entry("F32", "[-1]", "[0,4]"));
  expect_refused(entry("F32", "[4611686018427387904,4]", "[0,0]"));
  expect_refused(entry("F32", "[17]", "[0,68]"));
  expect_refused(entry("F32", "[1]", "[8,4]"));
  expect_refused(entry("F32", "[15]", "[0,60]"));
  expect_refused(entry("F32", "[15]", "[4,64]"));
  expect_refused(with_header(R"({"a":{"dtype":"U8","shape":[40],"data_offsets":[0,40]},)"
                             R"("b":{"dtype":"U8","shape":[40],"data_offsets":[24,64]}})") +
                 std::string(64, 'x'));
  write_text(path, entry("F32", "[16]", "[0,64]"));
  EXPECT_NO_THROW(load_file(path));
}

TEST(Safetensors, AFailedSaveLeavesTheOldFile) {
  const ranks::TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  EXPECT_THAT([&] { save_file(every_type(), folder / "no such/model"); },
              ThrowsMessage<Error>(HasSubstr("create its folder")));
  save_file({{"weight", torch::ones({2})}}, path);
  EXPECT_ANY_THROW(save_file({{"weight", torch::zeros({1}, torch::kComplexFloat)}}, path));
  EXPECT_TRUE(torch::equal(load_file(path).at("weight"), torch::ones({2})));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
  EXPECT_THAT([] { save_file(every_type(), "/dev/full/model"); },
              ThrowsMessage<Error>(HasSubstr("/dev/full")));
}

TEST(Load, RestoresAModuleAndRefusesAnother) {
  const ranks::TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  const auto make = [](int out) {
    return torch::nn::Sequential(torch::nn::Linear(3, out), torch::nn::BatchNorm1d(out));
  };
  auto saved = make(4);
  save_file(state_dict(*saved), path);
  auto loaded = make(4);
  loaded->to(torch::kDouble);
  load(*loaded, path);
  const auto expected = state_dict(*saved);
  for (const auto& [name, tensor] : state_dict(*loaded)) {
    EXPECT_TRUE(torch::equal(tensor, expected.at(name).to(tensor.scalar_type()))) << name;
  }
  EXPECT_EQ(loaded->parameters()[0].scalar_type(), torch::kDouble);
  torch::nn::Sequential other(torch::nn::Linear(3, 4));
  torch::nn::Linear bare(3, 4);
  auto wider = make(5);
  EXPECT_THAT([&] { load(*wider, path); }, ThrowsMessage<Error>(HasSubstr("shape [4")));
  EXPECT_THAT([&] { load(*other, path); }, ThrowsMessage<Error>(HasSubstr("does not have")));
  EXPECT_THAT([&] { load(*bare, path); }, ThrowsMessage<Error>(HasSubstr("is not in it")));
  EXPECT_THAT([&] { load(*loaded, folder / "nothing"); },
              ThrowsMessage<Error>(HasSubstr("nothing")));
}

TEST(Save0, WritesOnRankZeroAloneUnderTheUnwrappedNames) {
  ranks::run(3, [] {
    const World world = setup();
    auto linear = torch::nn::Linear(2, 2);
    const auto model = DistributedDataParallel(linear.ptr());
    const auto path = ranks::shared_folder() / ("by rank " + std::to_string(world.rank));
    save0(*model, path);
    EXPECT_EQ(std::filesystem::exists(path), world.rank == 0);
    if (world.rank != 0) return;
    const StateDict saved = load_file(path);
    EXPECT_TRUE(torch::equal(saved.at("weight"), linear->weight));
    EXPECT_EQ(saved.size(), 2U);
    load(*model, path);
  });
}

TEST(Save0, SavesInASerialProgram) {
  const ranks::TemporaryFolder folder;
  torch::nn::Linear linear(2, 2);
  save0(*linear, folder / "model");
  EXPECT_TRUE(std::filesystem::exists(folder / "model"));
}

}  // namespace
}  // namespace distributed_utils

// Damaged sharded models: each damage is an Error that names the file, and nothing is changed.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>

#include "box_net.hpp"
#include "damages.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/setup.hpp"
#include "distributed_utils/sharded_model.hpp"
#include "ranks.hpp"

namespace distributed_utils {
namespace {

using damages::Damaged;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

namespace fs = std::filesystem;

/// Random damages of each file; more by hand: SHARD_DAMAGE_ROUNDS=1000.
int rounds() {
  const char* more = std::getenv("SHARD_DAMAGE_ROUNDS");  // NOLINT(concurrency-mt-unsafe)
  return more == nullptr ? 20 : std::atoi(more);
}

/// One rank that loads again and again what three have saved.
class Loader {
 public:
  explicit Loader(fs::path folder) : folder_(std::move(folder)) {
    run_.train(0, 1);
    reset();
  }

  /// What it says; empty if it loads.
  std::string load() {
    ++tried;
    try {
      load_sharded_model(run_.net, run_.optimizer, folder_);
    } catch (const Error& error) {
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

  fs::path folder_;
  BoxRun run_{0, {}};
  std::vector<at::Tensor> loaded_;
};

/// A model of three ranks, in a folder that one rank may damage; then `body`.
void with_saved(const std::function<void(const fs::path&)>& body) {
  const ranks::TemporaryFolder folder;
  ranks::run(3, [&] {
    BoxRun run(setup().rank, {3, 1});
    run.train(0, 2);
    save_sharded_model(run.net, run.optimizer, folder / "model");
    destroy_process_group();
  });
  ranks::run(1, [&] { body(folder / "model"); });
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

bool same(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) { return torch::equal(x, y); });
}

TEST(DamagedShards, EachDamageToEachFileIsNoticedAndNamed) {
  with_saved([](const fs::path& folder) {
    Loader loader(folder);
    EXPECT_EQ(loader.load(), "");
    const auto files = files_in(folder);
    ASSERT_EQ(files.size(), 7U);
    for (const auto& file : files) {
      const std::string good = damages::bytes_of(file);
      auto all = damages::flips(good, rounds());
      for (const auto& more : {damages::zeros(good), damages::other_lengths(good)}) {
        all.insert(all.end(), more.begin(), more.end());
      }
      for (const auto& other : files) {
        if (other != file)
          all.push_back({"in place of it " + other.string(), damages::bytes_of(other)});
      }
      if (file.extension() != ".json") all.push_back({"gone", std::nullopt});
      for (const auto& damaged : all) {
        fs::remove(file);
        if (damaged.bytes) damages::write_bytes(file, *damaged.bytes);
        EXPECT_THAT(loader.load(), HasSubstr(file.string() + ": ")) << damaged.what;
      }
      fs::remove(file);
      fs::create_directory(file);
      EXPECT_THAT(loader.load(), HasSubstr(file.string() + ": is no regular file"));
      damages::write_bytes(file, good);
    }
    const auto copy = folder / "shard-00004-model-00001-of-00001.safetensors";
    fs::copy_file(files[1], copy);
    EXPECT_THAT(loader.load(),
                HasSubstr(copy.string() + ": is not named in the folder's manifest"));
    fs::remove(copy);
    EXPECT_EQ(loader.load(), "");
    EXPECT_GE(loader.tried, 350);
  });
}

/// A file's header, which is changed at will.
class Header {
 public:
  explicit Header(fs::path file) : file_(std::move(file)), good_(damages::bytes_of(file_)) {
    std::memcpy(&size_, good_.data(), sizeof size_);
    header_ = json::parse(good_.substr(8, size_));
  }

  const json& read() const { return header_; }
  json offsets() const {
    return json::parse(header_.at("__metadata__").at("DCP_SHARDING_INFO").get<std::string>());
  }
  void write(const json& header) const {
    const std::string text = header.dump();
    const uint64_t size = text.size();
    damages::write_bytes(file_, std::string(reinterpret_cast<const char*>(&size), 8) + text +
                                    good_.substr(8 + size_));
  }
  void write_offsets(const json& offsets) const {
    json header = header_;
    header["__metadata__"]["DCP_SHARDING_INFO"] = offsets.dump();
    write(header);
  }
  void mend() const { damages::write_bytes(file_, good_); }

 private:
  fs::path file_;
  std::string good_;
  uint64_t size_ = 0;
  json header_;
};

/// What may stand in place of a list of numbers.
std::vector<json> other_lists(const json& list) {
  std::vector<json> result = {nullptr, "0",   json::array(), json::object(),
                              0.5,     {0.5}, {true},        {"0"}};
  for (size_t i = 0; i < list.size(); ++i) {
    for (const int64_t step : {int64_t{-1}, int64_t{1}, int64_t{1} << 62}) {
      result.push_back(list);
      result.back()[i] = list[i].get<int64_t>() + step;
    }
    result.push_back(list);
    result.back().erase(i);
  }
  result.push_back(list);
  result.back().push_back(1);
  std::erase(result, list);
  return result;
}

// As Python writes it, without hashes: what the header says must fit together, or it is refused.
TEST(DamagedShards, WithoutAManifestWhatDoesNotFitTogetherIsRefused) {
  with_saved([](const fs::path& folder) {
    fs::remove(folder / "manifest.json");
    Loader loader(folder);
    EXPECT_EQ(loader.load(), "");
    for (const auto& file : files_in(folder)) {
      const Header header(file);
      const auto refused = [&](const std::string& tensor, const std::string& what) {
        EXPECT_THAT(loader.load(), AllOf(HasSubstr(folder.string()), HasSubstr(".safetensors: ")))
            << file << " " << tensor << " " << what;
      };
      const json good_offsets = header.offsets();
      for (const auto& [name, offsets] : good_offsets.items()) {
        for (const auto& other : other_lists(offsets.at("saved_offsets"))) {
          json all = header.offsets();
          all[name]["saved_offsets"] = other;
          header.write_offsets(all);
          refused(name, other.dump());
        }
        json all = header.offsets();
        all.erase(name);
        header.write_offsets(all);
        refused(name, "without offsets");
        for (const char* field : {"shape", "data_offsets"}) {
          for (const auto& other : other_lists(header.read().at(name).at(field))) {
            json changed = header.read();
            changed[name][field] = other;
            header.write(changed);
            refused(name, field + other.dump());
          }
        }
        for (const json& other : {json("F32"), json("F31"), json(7), json(nullptr)}) {
          json changed = header.read();
          changed[name]["dtype"] = other;
          header.write(changed);
          refused(name, other.dump());
        }
        header.mend();
      }
    }
    EXPECT_EQ(loader.load(), "");
    EXPECT_GE(loader.tried, 500);
  });
}

TEST(DamagedShards, WithoutAManifestRandomDamageOfHeadersIsRefusedOrChangesNothing) {
  with_saved([](const fs::path& folder) {
    fs::remove(folder / "manifest.json");
    Loader loader(folder);
    EXPECT_EQ(loader.load(), "");
    const auto good_values = loader.loaded();
    std::mt19937_64 random(5);
    int refused = 0;
    for (const auto& file : files_in(folder)) {
      const std::string good = damages::bytes_of(file);
      uint64_t header = 0;
      std::memcpy(&header, good.data(), sizeof header);
      for (int i = 0; i < 5 * rounds(); ++i) {
        std::string bytes = good;
        const size_t place = random() % (8 + header);
        bytes[place] = static_cast<char>(bytes[place] ^ (1 << random() % 8));
        damages::write_bytes(file, bytes);
        const auto error = loader.load();
        if (error.empty()) {
          EXPECT_TRUE(same(loader.loaded(), good_values)) << file << " at " << place;
        } else {
          EXPECT_THAT(error, HasSubstr(folder.string()));
          ++refused;
        }
      }
      damages::write_bytes(file, good);
    }
    EXPECT_GT(refused, 20 * rounds());
  });
}

TEST(DamagedShards, WhatAnotherSaveHasLeftIsNoticed) {
  with_saved([](const fs::path& folder) {
    fs::remove(folder / "manifest.json");
    Loader loader(folder);
    const auto of = [&](int rank) {
      return folder / ("shard-0000" + std::to_string(rank) + "-model-00001-of-00001.safetensors");
    };
    fs::copy_file(of(3), of(4));
    EXPECT_THAT(loader.load(), HasSubstr("holds elements of 'box.bias' that shard-00003-model"));
    fs::remove(of(4));
    fs::rename(of(3), of(5));
    EXPECT_EQ(loader.load(), "") << "names of files mean nothing";
    fs::remove(of(5));
    EXPECT_THAT(loader.load(),
                AllOf(HasSubstr("has shape [10, 6] in its files, the model's has [13, 6]"),
                      HasSubstr("bring back the file")));
  });
}

}  // namespace
}  // namespace distributed_utils

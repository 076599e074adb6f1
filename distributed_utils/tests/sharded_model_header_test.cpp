// Sharded models as Python writes them, without hashes, whose headers say what cannot be.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "damages.hpp"
#include "shard_loader.hpp"

namespace distributed_utils {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

namespace fs = std::filesystem;

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
  void fix() const { damages::write_bytes(file_, good_); }

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
  with_saved_shards([](const fs::path& folder) {
    fs::remove(folder / "manifest.json");
    ShardLoader loader(folder);
    EXPECT_EQ(loader.load(), "");
    for (const auto& file : files_in(folder)) {
      // One of the optimizer stands for the others.
      if (file.string().find("-optimizer-") != std::string::npos &&
          file.string().find("-00002-") == std::string::npos)
        continue;
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
        header.fix();
      }
    }
    EXPECT_EQ(loader.load(), "");
    EXPECT_GE(loader.tried, 400);
  });
}

}  // namespace
}  // namespace distributed_utils

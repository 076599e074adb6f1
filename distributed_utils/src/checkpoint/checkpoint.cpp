#include "distributed_utils/checkpoint.hpp"

#include <fmt/format.h>

#include <charconv>
#include <functional>
#include <utility>

#include "checkpoint/checkpoint_content.hpp"
#include "checkpoint/checkpoint_files.hpp"
#include "checkpoint/generator_state.hpp"
#include "checkpoint/pieces.hpp"
#include "checkpoint/restore.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/placement.hpp"
#include "files/sha256.hpp"
#include "group/together.hpp"

namespace distributed_utils {
namespace {

/// The seed of a rank that has no saved generator: see Checkpoint::restore.
uint64_t derived_seed(const std::string& manifest_hash, int rank, int world_size) {
  const std::string hash =
      detail::sha256(fmt::format("{} rank {} of {}", manifest_hash, rank, world_size));
  uint64_t seed = 0;
  std::from_chars(hash.data(), hash.data() + 16, seed, 16);
  return seed;
}

template <typename T>
T scalar(const detail::Manifest& manifest, const std::string& name, const char* type) {
  const auto found = manifest.scalars.find(name);
  if (found == manifest.scalars.end()) {
    throw Error(fmt::format(
        "The checkpoint of step {} has no scalar '{}'. Fix: give it to save(), or resume from a "
        "checkpoint of this program.",
        manifest.step, name));
  }
  if (const T* value = std::get_if<T>(&found->second)) return *value;
  throw Error(
      fmt::format("The scalar '{}' in the checkpoint of step {} is not a {}. Fix: read it with the "
                  "type that it was saved with.",
                  name, manifest.step, type));
}

}  // namespace

Checkpoint::Checkpoint() = default;
Checkpoint::Checkpoint(std::unique_ptr<Content> content) : content_(std::move(content)) {}
Checkpoint::~Checkpoint() = default;
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;

int64_t Checkpoint::step() const { return content_ ? content_->manifest.step : 0; }

int Checkpoint::world_size() const { return content_ ? content_->manifest.world_size : 0; }

std::vector<std::vector<size_t>> Checkpoint::bucket_indices() const {
  if (!content_ || !content_->same_world) return {};
  return content_->manifest.bucket_indices;
}

int64_t Checkpoint::whole_number(const std::string& name, int64_t otherwise) const {
  return content_ ? scalar<int64_t>(content_->manifest, name, "whole number") : otherwise;
}

double Checkpoint::real_number(const std::string& name, double otherwise) const {
  return content_ ? scalar<double>(content_->manifest, name, "double") : otherwise;
}

std::string Checkpoint::get(const std::string& name, const std::string& otherwise) const {
  return content_ ? scalar<std::string>(content_->manifest, name, "string") : otherwise;
}

bool Checkpoint::contains(const std::string& name) const {
  return content_ && content_->manifest.scalars.contains(name);
}

const std::vector<StateDict>& Checkpoint::rank_states() const {
  static const std::vector<StateDict> none;
  return content_ ? content_->rank_states : none;
}

void Checkpoint::restore(torch::nn::Module& model, torch::optim::Optimizer& optimizer) {
  if (!content_) return;
  Content& content = *content_;
  const auto pieces = placements(model);
  const auto names = detail::names_of_all_ranks(content.group, pieces);
  std::function<void()> load_model;
  std::function<void()> load_optimizer;
  detail::together(content.group, [&] {
    if (content.restored) {
      throw Error("Checkpoint::restore: called a second time. Fix: load the checkpoint again.");
    }
    const auto file = content.folder / detail::kModelFile;
    load_model =
        detail::prepare_load(model, detail::read_pieces(content.model, pieces, names, file), file);
    load_optimizer = detail::prepare_load(
        optimizer, model, detail::read_optimizer_pieces(content.optimizer, pieces, names));
    return std::string();
  });
  load_model();
  load_optimizer();
  const int rank = get_rank(content.group);
  const int world_size = get_world_size(content.group);
  detail::restore_generators(content.generators, model,
                             derived_seed(content.manifest.sha256, rank, world_size));
  content.restored = true;
  content.model.clear();
  content.optimizer.clear();
}

}  // namespace distributed_utils

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "checkpoint/announced.hpp"
#include "checkpoint/cover.hpp"
#include "checkpoint/pieces.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/point_to_point.hpp"
#include "distributed_utils/sharded_model.hpp"
#include "files/atomic_file.hpp"
#include "files/safetensors_format.hpp"
#include "group/together.hpp"

namespace distributed_utils {
namespace {

namespace fs = std::filesystem;
using detail::FileEntry;
using detail::TensorEntry;

/// A piece, and the rank that gives it.
struct Given {
  int rank;
  TensorEntry piece;
};

/// All tensors in the order of their names, in which a file has them, and the pieces of each.
using Plan = std::map<std::string, std::vector<Given>>;

TensorEntry entry_of(const Placement& piece, const std::string& rank) {
  const char* dtype = detail::dtype_name(piece.tensor.scalar_type());
  return {.file = rank,
          .name = piece.name,
          .dtype = dtype != nullptr ? dtype : c10::toString(piece.tensor.scalar_type()),
          .global_shape = piece.global_shape,
          .offset = piece.offset,
          .local_shape = piece.tensor.sizes().vec()};
}

/// Throws Error, the same on all ranks, if what ranks hold does not make a whole model.
Plan make_plan(const std::vector<Placement>& pieces, const fs::path& file, const Group& group) {
  const int rank = get_rank(group);
  const std::string who = fmt::format("rank {}", rank);
  const auto texts = detail::together(group, [&] { return detail::announce(0, pieces, {}); });
  const auto announced = detail::read_announced(texts);
  const auto entries = detail::together(group, [&] {
    FileEntry mine = {.name = who, .size = 0, .sha256 = {}, .tensors = {}};
    for (const auto& piece : detail::pieces_to_write(pieces, rank, announced.model)) {
      mine.tensors.push_back(entry_of(piece, who));
    }
    return detail::to_text({mine});
  });
  Plan plan;
  std::vector<FileEntry> all;
  for (size_t giver = 0; giver < entries.size(); ++giver) {
    all.push_back(detail::files_from_text(entries[giver]).at(0));
    for (auto& piece : all.back().tensors) {
      plan[piece.name].push_back({static_cast<int>(giver), piece});
    }
  }
  detail::check_cover(file, all);
  return plan;
}

/// Writes on rank 0. Once something has failed there it writes no more, but goes on taking what
/// others send, so that nobody waits forever.
class FullFile {
 public:
  FullFile(const fs::path& path, const Plan& plan) : file_(path) {
    std::vector<detail::TensorHead> heads;
    for (const auto& [name, given] : plan) {
      const auto& piece = given.front().piece;
      heads.push_back({name, detail::scalar_type(path, piece.dtype), piece.global_shape});
    }
    const auto header = detail::safetensors_header(heads, path, {});
    file_.write(header.data(), header.size());
  }

  void write(const at::Tensor& tensor) {
    if (!failure_.empty()) return;
    try {
      const at::Tensor bytes = tensor.contiguous();
      file_.write(bytes.const_data_ptr(), bytes.nbytes());
    } catch (const std::exception& error) {
      failure_ = error.what();
    }
  }

  void commit() {
    if (!failure_.empty()) throw Error(failure_);
    file_.commit();
  }

 private:
  detail::AtomicFile file_;
  std::string failure_;
};

/// Sends this rank's pieces of a tensor to rank 0, which writes the tensor.
void gather_tensor(const std::vector<Given>& given, const Placement* mine, FullFile* file,
                   const Group& group) {
  const int rank = get_rank(group);
  const c10::Device device = get_world_size(group) == 1
                                 ? c10::Device(c10::kCPU)
                                 : group_or_world(group)->getBoundDeviceId().value_or(c10::kCPU);
  if (rank != 0) {
    for (const auto& [giver, piece] : given) {
      if (giver == rank) send(mine->tensor.detach().to(device), 0, group);
    }
    return;
  }
  const auto type = detail::scalar_type({}, given.front().piece.dtype);
  const at::Tensor whole = at::empty(given.front().piece.global_shape, type);
  for (const auto& [giver, piece] : given) {
    at::Tensor part;
    if (giver == 0) {
      part = mine->tensor.detach();
    } else {
      part = at::empty(piece.local_shape, at::dtype(type).device(device));
      recv(part, giver, group);
    }
    detail::part_of(whole, piece.offset, piece.local_shape).copy_(part);
  }
  file->write(whole);
}

}  // namespace

void save_full_model(const torch::nn::Module& model, const fs::path& file, const Group& group) {
  const auto pieces = placements(model);
  const Plan plan = make_plan(pieces, file, group);
  std::unordered_map<std::string, const Placement*> mine;
  for (const auto& piece : pieces) mine.emplace(piece.name, &piece);
  std::optional<FullFile> written;
  detail::together(group, [&] {
    if (get_rank(group) == 0) written.emplace(file, plan);
    return std::string();
  });
  for (const auto& [name, given] : plan) {
    const auto found = mine.find(name);
    gather_tensor(given, found == mine.end() ? nullptr : found->second,
                  written ? &*written : nullptr, group);
  }
  detail::together(group, [&] {
    if (written) written->commit();
    return std::string();
  });
}

}  // namespace distributed_utils

#pragma once
/// Checkpoints of a training run. A resumed run computes the same bits as one that was never
/// interrupted. A kill at any moment never damages an existing checkpoint.
///
/// In a trainer (position: samples that all ranks together have taken of this epoch):
///
///   Checkpoints checkpoints(output / "checkpoints");
///   Checkpoint start = resume ? checkpoints.load_latest() : Checkpoint();
///   const DistributedDataParallel model(module, {.bucket_indices = start.bucket_indices()});
///   train_sampler.skip(start.get("position", 0));
///   start.restore(*model, *optimizer);  // the last thing before the loop: it sets the generators
///   for (int64_t epoch = start.get("epoch", 0); ...)
///     ... after an optimizer step:
///     if (++step % every == 0)
///       checkpoints.save(step, *model, *optimizer, {{"epoch", epoch}, {"position", position}});
///
/// Without a checkpoint, load_latest() returns an empty one. Its restore() does nothing and its
/// get() returns the second argument, so a trainer needs only one code path.
///
/// A checkpoint is a folder, <directory>/step-000001200, with
///   model.safetensors      state_dict(model)                          (written by rank 0)
///   optimizer.safetensors  optimizer_state_dict(optimizer, model)     (written by rank 0)
///   model-<r>.safetensors, optimizer-<r>.safetensors: where placements(model) says that ranks
///                          hold different pieces, those that rank r holds and no lower rank
///   rank-<r>.safetensors   each rank's: "generator.cpu", "generator.cuda", and rank_state under
///                          "state.<name>"
///   manifest.json          JSON, written last. format: 1; step; world_size; scalars; files: name,
///                          size in bytes, sha256 (that of sha256sum); tensors: file, name, dtype,
///                          global_shape, and the offset and local_shape of the part that the file
///                          holds; bucket_indices: of the
///                          DistributedDataParallel; and, as the last entry, sha256 of all the
///                          text before it.
/// All files are written and synced in a hidden folder next to it, .step-000001200.tmp. Then that
/// folder is synced and renamed. So every folder whose name does not begin with a dot is complete.
/// Pillai et al., All File Systems Are Not Created Equal, OSDI 2014, explain why each sync is
/// needed. The layout follows PyTorch's distributed checkpoint
/// (docs.pytorch.org/docs/stable/distributed.checkpoint.html): metadata with global shapes and
/// offsets in one file, tensors by rank in others.
///
/// A different number of ranks may resume a run, and the ranks may shard the model differently.
/// Parameters, buffers and the optimizer's state keep every bit. The epoch continues where it was,
/// for any batch size, because DistributedSampler::skip() deals out only the remaining samples.
/// Random number generators differ then (see restore()), and so does dropout.
///
/// All ranks must see the directory, so several nodes need a shared file system. Ranks wait for
/// rank 0, which writes and checks most, up to SetupOptions::timeout. Raise that timeout for
/// checkpoints of tens of gigabytes.
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "distributed_utils/process_group.hpp"
#include "distributed_utils/safetensors.hpp"

namespace distributed_utils {

/// What a run remembers besides tensors: epoch, position in it, best loss. Doubles keep all bits.
using Scalar = std::variant<int64_t, double, std::string>;
using Scalars = std::map<std::string, Scalar>;

/// A checkpoint that was read and found complete. Its tensors stay in memory until restore().
class Checkpoint {
 public:
  /// An empty checkpoint, for a run that starts from the beginning.
  Checkpoint();
  ~Checkpoint();
  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;

  /// False for an empty one.
  explicit operator bool() const { return content_ != nullptr; }

  /// Of the run when it was saved: 0 for an empty one.
  int64_t step() const;
  int world_size() const;

  /// For DistributedDataParallelOptions::bucket_indices, so that the resumed run adds up gradients
  /// in the same order; empty if the number of ranks is another now.
  std::vector<std::vector<size_t>> bucket_indices() const;

  /// A scalar by its name; `otherwise` for an empty checkpoint. Throws Error if another checkpoint
  /// does not have it, or has it with another type.
  int64_t get(const std::string& name, std::integral auto otherwise) const {
    return whole_number(name, static_cast<int64_t>(otherwise));
  }
  double get(const std::string& name, std::floating_point auto otherwise) const {
    return real_number(name, otherwise);
  }
  std::string get(const std::string& name, const std::string& otherwise) const;

  /// Whether it holds a scalar of this name; an empty checkpoint holds none.
  bool contains(const std::string& name) const;

  /// The rank_state that ranks passed to save(), on the CPU. With the same number of ranks it has
  /// one entry: this rank's own. Otherwise the former ranks' entries are dealt out: rank r of w
  /// gets those of r, r + w, r + 2w, ..., so sums over ranks do not change. An empty checkpoint has
  /// none.
  const std::vector<StateDict>& rank_states() const;

  /// Restores the saved state of the model, the optimizer and this rank's random number generators.
  /// Every rank of the group must call it. Buffers become rank 0's, as in the next training
  /// forward. Frees the tensors, so it works once. An empty checkpoint does nothing. A rank that
  /// holds a part of a tensor gets that part, even if other ranks or other parts saved it. It reads
  /// the needed elements now, so the checkpoint must still exist. Throws Error on all ranks, and
  /// changes nothing, if model or optimizer are not of the kind, names and shapes that were saved,
  /// and if an element is in no file.
  ///
  /// Generators: torch's default one on the CPU and that of the model's GPU. Where a rank has no
  /// saved state, because the number of ranks or the device is another, they are seeded with the
  /// first 8 bytes (big-endian) of SHA-256 of "<the manifest's sha256> rank <r> of <world size>":
  /// different on every rank, the same every time.
  void restore(torch::nn::Module& model, torch::optim::Optimizer& optimizer);

 private:
  friend class Checkpoints;
  struct Content;
  explicit Checkpoint(std::unique_ptr<Content> content);

  int64_t whole_number(const std::string& name, int64_t otherwise) const;
  double real_number(const std::string& name, double otherwise) const;

  std::unique_ptr<Content> content_;
};

struct CheckpointOptions {
  int keep = 2;      ///< the newest ones that stay, at least 1
  Group group = {};  ///< the ranks of the run; empty: the world, or one rank without setup()
};

/// The checkpoints of one run, in one directory.
class Checkpoints {
 public:
  /// Throws Error for keep less than 1.
  explicit Checkpoints(std::filesystem::path directory, const CheckpointOptions& options = {});

  /// Saves a checkpoint. Every rank of the group must call it, between two optimizer steps. scalars
  /// come from rank 0, rank_state from each rank. Afterwards it removes all but the newest `keep`
  /// checkpoints, and what a killed run left behind. It replaces a checkpoint of the same step.
  ///
  /// If anything fails on any rank (disk full, directory read-only or missing), all ranks throw the
  /// same Error. Nothing of the new checkpoint remains, and older ones are unchanged. A trainer may
  /// catch the Error, warn and continue. It is an Error too if the directory holds a checkpoint of
  /// a later step, which no run that was resumed from the newest would meet, and if the ranks'
  /// pieces of a tensor overlap or are not all of it.
  void save(int64_t step, torch::nn::Module& model, const torch::optim::Optimizer& optimizer,
            const Scalars& scalars = {}, const StateDict& rank_state = {});

  /// Reads the newest checkpoint, or gives an empty one if there is none; every rank calls it.
  /// Sizes and hashes of all files are checked before anything else happens (rank 0 checks all,
  /// others what they read). Throws Error on all ranks, naming the file, what is wrong with it and
  /// which older checkpoint is good.
  Checkpoint load_latest();

  /// Reads that of this step.
  Checkpoint load(int64_t step);

 private:
  Checkpoint read(const std::optional<int64_t>& step);

  std::filesystem::path directory_;
  CheckpointOptions options_;
  bool existed_ = false;  // a directory that is gone later on must not be made again
};

/// The folder of the newest checkpoint in a directory; nullopt if there is none. Reads names only.
/// Throws Error if the directory cannot be read.
std::optional<std::filesystem::path> latest(const std::filesystem::path& directory);

}  // namespace distributed_utils

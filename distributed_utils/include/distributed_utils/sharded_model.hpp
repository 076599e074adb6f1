#pragma once
/// Saves a sharded model into a folder: every rank writes the pieces that it holds. Any number of
/// ranks can load it again, also with other shards.
///
///   save_sharded_model(*model, output / "model-best");             // all ranks
///   ... in another run, at another number of ranks:
///   load_sharded_model(*model, output / "model-best");             // all ranks, before the
///   optimizer
///
/// The folder holds
///   shard-<r>-model-00001-of-00001.safetensors      the pieces of the r-th rank, from 00001 on,
///   that
///                                                   no lower rank holds; rank 0 writes what all
///                                                   hold
///   shard-<r>-optimizer-00001-of-00001.safetensors  the same of optimizer_state_dict()
///   manifest.json                                   sizes, SHA-256 and pieces, as in a checkpoint
///                                                   (see checkpoint.hpp), of step 0
/// The model's files have the names and the format of PyTorch's distributed checkpoint
/// (torch.distributed.checkpoint) with HuggingFaceStorageWriter(path, save_distributed=True).
/// Python's HuggingFaceStorageReader loads them, whole or as DTensors, and
/// consolidate_safetensors_files merges them into one file. Each file's __metadata__ tells under
/// "DCP_SHARDING_INFO" where a piece begins in the whole tensor. Folders that Python wrote can be
/// loaded too. They have no manifest, so only the files' headers can be checked.
///
/// The folder is written under a hidden name next to it, .<name>.tmp, and renamed at the end. So a
/// kill at any moment leaves either the old folder or the complete new one. Ranks wait for each
/// other up to SetupOptions::timeout. Raise it for models of tens of gigabytes.
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <filesystem>

#include "distributed_utils/process_group.hpp"

namespace distributed_utils {

/// Every rank of the group must call it, with a folder that all ranks see. It creates the parent
/// folder if needed, and replaces a folder that was saved before. If anything fails on any rank,
/// all ranks throw the same Error, and the old folder is unchanged. It also throws Error if the
/// pieces of a tensor overlap or leave gaps, and if the folder holds anything else.
void save_sharded_model(const torch::nn::Module& model, const std::filesystem::path& folder,
                        const Group& group = {});

/// The same with the optimizer's state.
void save_sharded_model(const torch::nn::Module& model, const torch::optim::Optimizer& optimizer,
                        const std::filesystem::path& folder, const Group& group = {});

/// Loads the model's parameters and buffers, no matter how many ranks saved them. Every rank of the
/// group must call it. Each rank reads only the elements that it needs. Together the ranks also
/// read every file once, to compare the hashes with the manifest. Throws Error on all ranks, and
/// changes nothing, if a name is missing or unknown, if a shape or a type differs, if an element is
/// in no file or in two, or if a file is damaged.
void load_sharded_model(torch::nn::Module& model, const std::filesystem::path& folder,
                        const Group& group = {});

/// The same with the optimizer's state, which must have been saved with the model. The optimizer is
/// one of the model's parameters as they are now.
void load_sharded_model(torch::nn::Module& model, torch::optim::Optimizer& optimizer,
                        const std::filesystem::path& folder, const Group& group = {});

/// Writes the whole model to one file, like save0() of an unsharded model. Every rank of the group
/// must call it, and rank 0 writes. The ranks send one tensor after the other to rank 0, piece by
/// piece, and rank 0 keeps none. If anything fails, all ranks throw the same Error, and an existing
/// file is unchanged.
void save_full_model(const torch::nn::Module& model, const std::filesystem::path& file,
                     const Group& group = {});

}  // namespace distributed_utils

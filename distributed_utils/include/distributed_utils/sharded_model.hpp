#pragma once
/// A model in a folder to which every rank adds the pieces that it holds, as placements() says, and
/// from which any number of ranks, cut in any other way, takes its own.
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
/// The files of the model are named and made as those of HuggingFaceStorageWriter(path,
/// save_distributed=True) of PyTorch's distributed checkpoint (torch.distributed.checkpoint), so
/// that its HuggingFaceStorageReader loads them, whole or as DTensors, and
/// consolidate_safetensors_files makes one file of them: each file's __metadata__ has under
/// "DCP_SHARDING_INFO" where in the whole tensor a piece begins. What Python has written so is
/// loaded likewise; it has no manifest, so that only what the files' headers say can be checked.
///
/// The folder is written under a hidden name beside its own, .<name>.tmp, and renamed at the end: a
/// kill at any instant leaves what was there before, or all of what came. Ranks wait for each other
/// no longer than SetupOptions::timeout: set it higher for models of tens of gigabytes.
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <filesystem>

#include "distributed_utils/process_group.hpp"

namespace distributed_utils {

/// Every rank of the group calls it, with a folder that all see; the folder above is made if need
/// be. A folder that was saved before is replaced. If anything fails on any rank, all ranks throw
/// the same Error, and what was there is as it was. Throws Error too if the pieces of a tensor
/// overlap or are not all of it, and if the folder holds anything else.
void save_sharded_model(const torch::nn::Module& model, const std::filesystem::path& folder,
                        const Group& group = {});

/// The same with the optimizer's state.
void save_sharded_model(const torch::nn::Module& model, const torch::optim::Optimizer& optimizer,
                        const std::filesystem::path& folder, const Group& group = {});

/// Copies into the model's parameters and buffers what was saved of them, however many ranks saved
/// it. Every rank of the group calls it. Reads of the pieces only the elements that this rank
/// needs, but all files once, one rank this and another that, to compare their hashes with the
/// manifest. Throws Error on all ranks, and changes nothing, if a name is missing or unknown, if a
/// shape or a type is another, if an element is in no file or in two, and if a file is damaged.
void load_sharded_model(torch::nn::Module& model, const std::filesystem::path& folder,
                        const Group& group = {});

/// The same with the optimizer's state, which must have been saved with the model. The optimizer is
/// one of the model's parameters as they are now.
void load_sharded_model(torch::nn::Module& model, torch::optim::Optimizer& optimizer,
                        const std::filesystem::path& folder, const Group& group = {});

/// Writes the whole model to one file, as save0() of a model that is not sharded does. Every rank
/// of the group calls it; rank 0 writes. One tensor after the other is sent to rank 0, piece by
/// piece, and none is kept. If anything fails, all ranks throw the same Error, and a file that was
/// there is as it was.
void save_full_model(const torch::nn::Module& model, const std::filesystem::path& file,
                     const Group& group = {});

}  // namespace distributed_utils

#pragma once
/// The safetensors file format (github.com/huggingface/safetensors, README, "Format"): a JSON
/// header with name, type, shape and byte range of every tensor, then the bytes, little-endian.
/// Python, Rust and most tools read it, and reading it runs no code.
#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>

namespace distributed_utils {

/// Names to tensors, in the order of names.
using StateDict = std::map<std::string, at::Tensor>;

/// Writes a file that is either complete or does not exist: it uses a temporary file next to it,
/// fsync, rename, and fsync of the folder. Tensors may be on any device and need not be contiguous.
/// `metadata` goes into the header's "__metadata__". Throws Error naming the file (no such folder,
/// disk full, a type that safetensors does not know).
void save_file(const StateDict& tensors, const std::filesystem::path& path,
               const std::map<std::string, std::string>& metadata = {});

/// Reads all tensors, on the CPU. Throws Error naming the file and what is wrong with it.
StateDict load_file(const std::filesystem::path& path);

}  // namespace distributed_utils

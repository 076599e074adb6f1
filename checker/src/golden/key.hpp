#pragma once
/// What decides the bits of a result: machines with one key compute the same.
#include <span>
#include <string>
#include <string_view>

#include "support/project.hpp"

namespace checker::golden {

struct Key {
  std::string torch, glibc;
  std::string capability;  ///< by which ATen chooses its kernels: "AVX2"
  std::string vendor;      ///< of the CPU; MKL asks for it
  std::string flags;       ///< of the CPU, those that numeric libraries ask for

  bool operator==(const Key&) const = default;
};

struct KeyPart {
  std::string_view name;  ///< in the file and in what is said
  std::string Key::*value;
};

/// All of them, in the order of the file.
std::span<const KeyPart> key_parts();

/// The key of this machine and of this project's LibTorch, which the program `replay` knows. Throws
/// Error if it does not run.
Key key_here(const Project& project);

/// Fills in vendor and flags from the text of /proc/cpuinfo.
void read_cpu(std::string_view cpuinfo, Key& key);

/// "capability is AVX2, not AVX512; flags are those with fma": what tells two keys apart; empty if
/// nothing does.
std::string difference(const Key& here, const Key& there);

}  // namespace checker::golden

#pragma once
/// A command line of torchrun, read as torchrun reads it.
#include <map>
#include <span>
#include <string>
#include <vector>

namespace checker {

struct TorchrunCall {
  std::map<std::string, std::string> options;  ///< "rdzv-id": its value; "no-python": ""
  std::string unknown;                         ///< an option of somebody else's, before the program
  bool has_program = false;
  std::string program;                 ///< may be an empty word
  std::vector<std::string> arguments;  ///< the program's

  bool has(const std::string& option) const { return options.contains(option); }
  /// Empty if it is not given.
  std::string option(const std::string& name) const;
};

/// environment: PET_NNODES stands in for --nnodes, and so on. An option that torchrun does not have
/// ends the reading, as it ends torchrun.
TorchrunCall parse_torchrun(std::span<const std::string> words,
                            const std::map<std::string, std::string>& environment);

}  // namespace checker

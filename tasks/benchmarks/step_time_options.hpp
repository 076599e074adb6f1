#pragma once
/// What step_time takes beside the options of every trainer.
#include <cstdint>
#include <optional>
#include <string>

namespace step_time {

struct Settings {
  int ranks = 1;
  int nodes = 1;                ///< that NCCL is to take this machine for
  int64_t steps = 50;           ///< timed together
  int64_t repeats = 9;          ///< of those
  int64_t vocabulary = 66'000;  ///< of the text that it writes, unless --data gives one
  int64_t bucket_bytes = 25 << 20;
  bool bucket_views = false;
  bool compress = false;              ///< gradients travel as bf16
  std::optional<std::string> losses;  ///< a file for the loss of each step
  std::optional<std::string> trace;   ///< a file for what ran when
  std::optional<std::string> text;    ///< a folder for the text, and nothing else
};

/// Takes its own arguments out of argc and argv; prints its help and ends the program for --help.
/// Throws tasks::Error for a value that is not a number.
Settings take_settings(int& argc, char** argv);

}  // namespace step_time

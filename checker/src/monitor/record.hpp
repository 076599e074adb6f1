#pragma once
/// What one rank's monitoring recorded (see instrumentation/log.hpp), read. Times are
/// seconds; since the rank's own start until load_run() puts all ranks on one clock.
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "instrumentation/log.hpp"

namespace checker::monitor {

using instrumentation::GpuSample;
using instrumentation::GradientSizesRecord;
using instrumentation::Header;
using instrumentation::kGradientBins;
using instrumentation::kLeastGradient;
using instrumentation::kStepPhases;
using instrumentation::kUnknown;
using instrumentation::MemoryRecord;
using instrumentation::NodeSample;
using instrumentation::Phase;
using instrumentation::ProcessSample;
using instrumentation::TrafficRecord;

/// An optimizer step. There may be hundred thousands of them on each of many ranks.
struct Step {
  double begin = 0, end = 0;
  double loss = std::numeric_limits<double>::quiet_NaN();  ///< nan: unknown; inf: was not a number
  uint32_t number = 0;                                     ///< from 1
  uint32_t targets = 0;
  std::array<float, kStepPhases> phases{};  ///< seconds
  float collectives = 0;                    ///< seconds in which at least one was under way
  float learning_rate = 0;

  double duration() const { return end - begin; }
  /// A CUDA graph repeated it: its times are the GPU's, and nobody saw its phases but for the wait
  /// for data.
  bool is_replay() const { return phases[1] == 0 && phases[2] == 0 && phases[3] == 0; }
};

struct Span {
  double begin = 0, end = 0;
  uint64_t step = 0;
  Phase phase = Phase::data;
};

struct Collective {
  double begin = 0, end = 0;  ///< of its kernel, if on_gpu is known
  uint64_t sequence = 0, bytes = 0;
  uint32_t group = 0;
  uint8_t op_type = 0;
  bool failed = false;
  double on_gpu = 0;  ///< how long its kernel ran; 0: not known
};

/// One rank's part of the loss of a split.
struct Evaluation {
  uint64_t step = 0;  ///< after so many optimizer steps
  std::string split;
  double sum = 0, count = 0;
};

/// A metric of one rank's share.
struct Measured {
  uint64_t step = 0;  ///< after so many optimizer steps
  std::string name;   ///< "validation/accuracy"
  double sum = 0, count = 0;
  bool root = false;  ///< its value is the root of their ratio

  double value() const { return root ? std::sqrt(sum / count) : sum / count; }
};

struct Group {
  std::string name;
  uint32_t rank = 0, size = 0;
};

template <class Sample>
struct At {
  double time = 0;
  Sample sample{};
};

struct RankRecord {
  std::filesystem::path file;
  Header header{};
  std::vector<Step> steps;  ///< in order of time
  std::vector<Span> spans;
  std::vector<Collective> collectives;
  std::vector<At<ProcessSample>> process;
  std::vector<At<NodeSample>> node;
  std::vector<At<GpuSample>> gpus;
  std::vector<At<GradientSizesRecord>> gradients;
  std::vector<At<Evaluation>> evaluations;
  std::vector<At<Measured>> measured;
  std::map<uint32_t, std::string> gpu_names;  ///< by number: "<uuid> <name>"
  std::map<uint8_t, TrafficRecord> traffic;   ///< by type, the last of each
  std::map<uint32_t, Group> groups;           ///< by number
  std::map<std::string, std::string> configuration;
  std::string device;
  std::optional<MemoryRecord> memory;
  double last = 0;         ///< time of the last record
  bool ended = false;      ///< it came to a regular end
  uint64_t lost = 0;       ///< bytes that are damaged and left out
  bool cut_short = false;  ///< the file ends within a chunk: not all of it was copied

  std::string host() const { return header.host; }
  uint32_t rank() const { return header.rank; }
};

/// Reads a record, of a rank that has ended, was killed or runs. What is damaged is left out and
/// counted. Throws Error for a file that is not a record, or of another format. last_chunks: of a
/// long one, only its beginning and so many chunks at its end, for what happens now.
RankRecord read_record(const std::filesystem::path& file, size_t last_chunks = SIZE_MAX);

/// Moves everything by so many seconds.
void shift(RankRecord& record, double seconds);

}  // namespace checker::monitor

#pragma once
/// What a run did and used, for people to look at: one record file a rank, in a memory map, so that
/// a run that is killed leaves what was sampled, and ranks on many nodes write side by side without
/// locks. Off until start(); off, a seam costs one branch.
///
/// The file: a Header, then records, each a RecordHeader and `size` bytes, padded to kAlignment.
/// The file grows by whole chunks; no record lies in two of them, so that a reader that meets
/// damage goes on at the next. Numbers are in the machine's own byte order, times nanoseconds of
/// CLOCK_MONOTONIC.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace distributed_utils::monitoring {

/// What a record describes. Values are part of the file format: append, never renumber.
enum class Kind : uint16_t {
  padding = 0,        ///< the rest of a chunk
  configuration = 1,  ///< text, lines "key=value"
  device = 2,         ///< where batches go: text, "cpu" or "cuda:1"
  group = 3,          ///< a process group: GroupRecord, its name
  process = 4,        ///< ProcessSample of this rank
  node = 5,           ///< NodeSample, by local rank 0
  gpu_name = 6,       ///< uint64 number, then text: "<uuid> <name>"
  gpu = 7,            ///< GpuSample
  span = 8,           ///< time that ended at the record's: SpanRecord
  step = 9,           ///< an optimizer step has ended: StepRecord
  loss = 10,          ///< a step's mean training loss on this rank: LossRecord
  collective = 11,    ///< a collective has ended: CollectiveRecord
  traffic = 12,       ///< all collectives of a type so far: TrafficRecord
  memory = 13,        ///< once: MemoryRecord
  end = 14,           ///< a regular exit: empty
  gradients = 15,     ///< before an optimizer step, now and then: GradientsRecord
  evaluation = 16,    ///< an evaluation has ended: EvaluationRecord, then text: the split's name
};

/// What the main thread does. On GPUs these are the host's times: a kernel runs on after its call.
enum class Phase : uint32_t { data, forward, backward, optimizer, evaluation, checkpoint };
constexpr size_t kStepPhases = 4;  ///< the first four belong to a step

constexpr uint64_t kMagic = 0x32304e4f4d53574c;  // of format 2
constexpr uint64_t kAlignment = 16;
constexpr uint64_t kChunk = 256 << 10;
constexpr const char* kExtension = ".monitor";

struct Header {
  uint64_t magic;
  uint64_t run;          ///< the same on all ranks of a run
  int64_t wall;          ///< CLOCK_REALTIME at the start, nanoseconds
  uint64_t nanoseconds;  ///< CLOCK_MONOTONIC at the same moment
  uint32_t rank;         ///< as the launcher says
  uint32_t local_rank;
  uint32_t world_size;
  uint32_t process;  ///< its id
  char host[64];     ///< ends with a zero
  uint64_t check;    ///< checksum() of what stands before
  uint64_t reserved;
};
static_assert(sizeof(Header) % kAlignment == 0);

struct RecordHeader {
  uint32_t size;  ///< bytes of payload
  Kind kind;
  uint16_t check;  ///< record_check(), written last; 0: not yet whole
  uint64_t nanoseconds;
};

struct GroupRecord {
  uint32_t group;  ///< number of the group in this process
  uint32_t rank;
  uint32_t size;
  uint32_t name_size;
};

struct ProcessSample {
  uint64_t cpu;       ///< nanoseconds of CPU time so far, all threads
  uint64_t resident;  ///< bytes
  uint64_t peak;      ///< bytes resident at most, so far
  uint64_t read;      ///< bytes from storage so far (/proc/self/io)
  uint64_t written;   ///< bytes to storage so far
};

struct NodeSample {
  uint64_t busy;       ///< ticks of all CPUs so far (/proc/stat)
  uint64_t ticks;      ///< busy and idle ones
  uint64_t total;      ///< bytes of memory
  uint64_t available;  ///< bytes
  uint64_t cpus;
};

/// kUnknown: the device does not tell.
constexpr uint32_t kUnknown = UINT32_MAX;
struct GpuSample {
  uint64_t used, total;  ///< bytes of memory
  uint32_t number;       ///< as in gpu_name
  uint32_t utilisation;  ///< percent of the time in which a kernel ran
  uint32_t milliwatts;
  uint32_t sm_clock;      ///< MHz
  uint32_t memory_clock;  ///< MHz
  uint32_t celsius;
};

struct SpanRecord {
  uint64_t begin;
  uint64_t step;  ///< that it belongs to, from 1
  Phase phase;
  uint32_t reserved;
};

struct StepRecord {
  uint64_t step;  ///< from 1
  uint64_t begin;
  uint64_t phases[kStepPhases];  ///< nanoseconds
  uint64_t collectives;          ///< nanoseconds in which at least one was under way
  uint64_t targets;              ///< in this rank's batches
  double learning_rate;
};

struct LossRecord {
  uint64_t step;
  double mean;
};

/// Sums of one rank: over all ranks they make the mean that a trainer reports.
struct EvaluationRecord {
  uint64_t step;   ///< optimizer steps that were done before
  uint64_t count;  ///< targets
  double sum;      ///< of losses
};

struct CollectiveRecord {
  uint64_t begin;     ///< when it was called
  uint64_t on_gpu;    ///< how long its kernel ran, waiting for others included; 0: not known
  uint64_t sequence;  ///< of the group, from 0
  uint64_t bytes;     ///< in the tensors that this rank gave
  uint32_t group;
  uint8_t op_type;  ///< c10d::OpType
  uint8_t failed;   ///< 1: with an exception
  uint16_t reserved;
};

struct TrafficRecord {
  uint64_t op_type;      ///< c10d::OpType
  uint64_t calls;        ///< that have ended
  uint64_t bytes;        ///< in the tensors that this rank gave
  uint64_t nanoseconds;  ///< the sum of their times; on GPUs of those that are known
};

struct MemoryRecord {
  uint64_t parameters, gradients, optimizer;  ///< bytes
  uint64_t activations;  ///< bytes that the forward pass left allocated for the backward pass
};

/// Of all elements of all gradients of a step.
constexpr size_t kGradientBins = 64;
constexpr int kLeastGradient = -48;  ///< bin i counts sizes in [2^(i - 48), 2^(i - 47))
struct GradientsRecord {
  uint64_t step;
  uint64_t zeros;                ///< in no bin
  double largest;                ///< size of an element
  double sum;                    ///< of sizes
  double sum_of_squares;         ///< of which the root is the norm
  uint32_t bins[kGradientBins];  ///< the first and the last one hold what is beyond them as well
};

constexpr uint32_t checksum(std::span<const std::byte> bytes, uint32_t from = 2166136261U) {
  for (const auto byte : bytes) from = (from ^ static_cast<uint32_t>(byte)) * 16777619U;  // FNV-1a
  return from;
}

/// Of a record's size, kind, time and payload; never 0.
inline uint16_t record_check(RecordHeader header, std::span<const std::byte> payload) {
  header.check = 0;
  const auto sum = checksum(payload, checksum(std::as_bytes(std::span(&header, 1))));
  const auto folded = static_cast<uint16_t>(sum ^ (sum >> 16));
  return folded == 0 ? uint16_t{1} : folded;
}

struct StartOptions {
  /// Gets a folder of its own for each run, with a file for each rank.
  std::filesystem::path folder;
  std::string configuration = {};  ///< as Kind::configuration
  std::chrono::milliseconds interval{500};
};

/// Begins to monitor this process, until it exits. Rank and world come from the launcher's
/// environment. Throws Error if the file cannot be made, or if this process is monitored already.
void start(const StartOptions& options);

/// True after start().
bool enabled();

/// The time of records, now.
uint64_t now();

/// Appends one record of this moment, or of `time`. Thread-safe. Once the disk is full, or the file
/// larger than a run should leave behind, nothing more is recorded.
void record(Kind kind, std::span<const std::byte> payload, uint64_t time = now());
template <class Record>
void record_one(Kind kind, const Record& payload, uint64_t time = now()) {
  record(kind, std::as_bytes(std::span(&payload, 1)), time);
}
void record_text(Kind kind, std::string_view text);
/// A record with text behind it.
template <class Record>
void record_named(Kind kind, const Record& payload, std::string_view text) {
  std::string bytes(reinterpret_cast<const char*>(&payload), sizeof payload);
  record_text(kind, bytes.append(text));
}

/// Whether what happens in this step is to be recorded one by one: at first always, later in twenty
/// steps of every thousand.
bool wants_details(uint64_t step);
/// The step that now begins; collectives, too, are recorded one by one if it wants_details().
void set_step(uint64_t step);

/// Nanoseconds, up to now and since it was last asked, in which a collective was under way.
uint64_t collective_time();

}  // namespace distributed_utils::monitoring

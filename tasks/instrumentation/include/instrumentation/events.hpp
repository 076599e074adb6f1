#pragma once
/// What a rank's log holds: the kinds of records and their payloads.
#include <cstddef>
#include <cstdint>

namespace instrumentation {

/// What a record describes. Values are part of the file format: append, never renumber.
enum class Kind : uint16_t {
  padding = 0,  ///< no record: the rest of a chunk

  // The process.
  maps = 1,           ///< text, /proc/self/maps: turns addresses into source lines
  configuration = 2,  ///< text, lines "key=value"
  device = 3,         ///< where batches go: text, "cpu" or "cuda:1"
  exit = 4,           ///< a regular exit: empty

  // Process groups.
  group = 5,       ///< GroupRecord, its name, its world ranks as uint32 (none if not known)
  collective = 6,  ///< before the call: CollectiveRecord, then return addresses as uint64; of a
                   ///< call by another thread than the main one, then those of note_place()
  completed = 7,   ///< a collective has ended: CompletedRecord
  waited = 8,      ///< the program waits for a collective, has waited, or may: WaitedRecord
  shutdown = 9,    ///< a group is being shut down: uint64 its number

  // Calls of distributed_utils.
  sampler = 10,    ///< a DistributedSampler was made: SamplerRecord
  set_epoch = 11,  ///< of a sampler and all its copies: uint64 its number, uint64 epoch
  printed = 12,    ///< print0: uint64 1 if this rank prints, which only rank 0 does, else 0
  saved = 13,      ///< save0: uint64 1 if this rank writes, which only rank 0 does, else 0

  // The training.
  splits = 14,      ///< once: text, the names of the task's splits, in lines
  metrics = 15,     ///< once: text, the names of the task's metrics, in lines
  fetch = 16,       ///< a batch is fetched: uint64 split (its place in splits), then uint64 indices
  taken = 17,       ///< no longer written
  phase = 18,       ///< what the main thread does from here on: PhaseRecord
  forward = 19,     ///< a model's forward pass begins: ForwardRecord, then the fingerprint of each
                    ///< sample's input as uint64
  loss = 20,        ///< a batch's loss: LossRecord, then a double sum and count of each metric
  reported = 21,    ///< a score that the trainer reports: double mean loss, then one of each metric
  model = 22,       ///< make_model returns: Tensors, parameters and buffers with their values
  parameters = 23,  ///< no longer written
  learning_rates = 24,  ///< before an optimizer step: a double for each of its groups
  values = 25,          ///< before an optimizer step: the bytes of all parameters of its model, in
                        ///< the order of `model`, each in its own type
  gradients = 26,       ///< before an optimizer step: as values; zeros where there is no gradient
  buffers = 27,         ///< before an optimizer step and when an evaluation begins, if they have
                        ///< changed: Tensors

  // Figures for people to look at.
  process = 28,         ///< ProcessSample of this rank
  node = 29,            ///< NodeSample, by local rank 0
  gpu_name = 30,        ///< uint64 number, then text: "<uuid> <name>"
  gpu = 31,             ///< GpuSample
  step = 32,            ///< an optimizer step has ended: StepRecord
  step_loss = 33,       ///< a step's mean training loss on this rank: StepLossRecord
  traffic = 34,         ///< all collectives of a type so far: TrafficRecord
  memory = 35,          ///< once: MemoryRecord
  gradient_sizes = 36,  ///< before an optimizer step, now and then: GradientSizesRecord
  evaluation = 37,      ///< an evaluation has ended: EvaluationRecord, then text: the split's name

  // The training, continued: which samples are used, and by which step.
  samples = 38,    ///< a batch has been fetched: SamplesRecord, then a SampleRecord of each
  targets = 39,    ///< before a loss: the fingerprint of each sample's target as uint64
  backward = 40,   ///< backward() has come to a loss: uint64 its number in this process, from 0
  stepping = 41,   ///< before an optimizer step: SteppingRecord, then the optimizer's parameters by
                   ///< their place in the model as uint64 (kUnknownPlace: not of that model)
  generator = 42,  ///< before a forward pass in training, if it has changed: the state of torch's
                   ///< generator of random numbers
  progress = 43,   ///< a trainer plans its steps: ProgressRecord

  // Files in the folder that WORLDSIZE_FILES names, where a run is recorded with the file shim.
  file = 44,  ///< before a file changes: FileRecord, its path, then its new path if it moves

  prepared = 45,  ///< a task wants prepared data: uint64 1 if they are there, 0 if this process is
                  ///< about to make them; then their name
  measured = 46,  ///< a metric of an evaluation that has ended: MeasuredRecord, then text: the
                  ///< split's name, "/" and the metric's

  // Exercises.
  result = 47,  ///< the program shows a result: Tensors, one with its name and values
  read = 48,    ///< the program reads a file that another rank wrote: text, its name

  // The training, continued.
  backward_ended = 49,  ///< a backward() that came to a loss has computed all: uint64 its number
  pieces = 50,  ///< before `stepping` of an optimizer without parameters of a model: Tensors
  unit = 51,    ///< what becomes of a unit of FullyShardedDataParallel: UnitRecord, then its name
  allocated = 52,  ///< AllocatedRecord

  // Calls of distributed_utils, continued.
  setup = 53,  ///< before setup() joins: text, the backend and the device that it is asked for, a
               ///< line each; empty where it is asked for none
};

struct UnitRecord {
  /// As distributed_utils::UnitEvent.
  enum class Event : uint64_t { gather_issued, gathered, freed, reduce_issued, reduced } event;
};

/// When memory is looked at: before a model is made, behind a loss, around an optimizer step, when
/// a score is reported, and before a file changes that the file shim tells of.
enum class Moment : uint64_t { model_begins, loss, step_begins, step_ends, reported, file };
/// Bytes of tensors in CPU memory.
struct AllocatedRecord {
  Moment moment;
  uint64_t live;
  uint64_t most, least;  ///< since the record before
};

struct GroupRecord {
  uint32_t group;  ///< number of the group in this process, in the order of making
  uint32_t rank;
  uint32_t size;
  uint32_t name_size;
};

struct CollectiveRecord {
  uint64_t sequence;  ///< of the group, from 0
  uint64_t elements;  ///< in the input tensors (send, recv, broadcast: in the tensors)
  uint64_t bytes;     ///< of these
  uint64_t products;  ///< matrix products that this process began before
  uint32_t group;
  int32_t root;        ///< root, or the other rank of send and recv, in the group; -1: none
  int32_t tag;         ///< of send and recv; -1: none
  uint32_t frames;     ///< return addresses that follow, innermost first
  uint8_t op_type;     ///< c10d::OpType
  uint8_t reduce_op;   ///< c10d::ReduceOp::RedOpType; 255: none
  int8_t scalar_type;  ///< c10::ScalarType; -1: no tensor
  uint8_t device;      ///< c10::DeviceType of the first tensor
  uint32_t reserved;
};

struct CompletedRecord {
  uint64_t sequence;
  uint64_t on_gpu;  ///< nanoseconds that its kernel ran, waiting for others included; 0: not known
  uint32_t group;
  uint32_t failed;  ///< 1: with an exception
};

/// Whoever takes a collective's future may wait for that, which nobody sees.
constexpr uint32_t kFutureTaken = 2;
struct WaitedRecord {
  uint64_t sequence;
  uint64_t products;  ///< matrix products that this process began before
  uint32_t group;
  uint32_t done;  ///< 0: begins to wait; 1: has waited, or has asked and heard that it has ended
};

struct SamplerRecord {
  uint64_t number;  ///< of the sampler in this process, in the order of making
  uint64_t dataset_size, num_replicas, rank, seed;
  uint64_t shuffle, drop_last, pad;  ///< 0 or 1
};

/// What the main thread does. On GPUs these are the host's times: a kernel runs on after its call.
enum class Phase : uint32_t {
  data,
  forward,
  backward,
  optimizer,
  evaluation,
  checkpoint,
  none,     ///< nothing of these, until the next phase
  dropped,  ///< as none; and what began with the phase before was none of it either
};
constexpr size_t kStepPhases = 4;  ///< the first four belong to a step

struct PhaseRecord {
  Phase phase;
  uint32_t split;  ///< of data and evaluation: its place in splits; kUnknown elsewhere
  uint64_t step;   ///< that it belongs to, from 1
};

struct ForwardRecord {
  uint64_t training;   ///< 1: is_training()
  uint64_t gradients;  ///< 1: they are on
};

/// Fingerprints are hashes (fnv1a.hpp) of the bytes that make up one sample.
struct SamplesRecord {
  uint64_t split;  ///< its place in splits
  uint64_t size;   ///< samples in the split
};
struct SampleRecord {
  uint64_t index, input, target;  ///< in the split; fingerprints
};

constexpr uint64_t kUnknownPlace = ~uint64_t{0};
struct SteppingRecord {
  uint64_t model;  ///< by its number in this process, from 0; kUnknownPlace: none of the task's
};

struct ProgressRecord {
  uint64_t world_size;   ///< with which it plans
  uint64_t total_steps;  ///< of the run
};

enum class FileAction : uint32_t {
  write,  ///< it is opened to be written, from its beginning or at its end, or is made
  move,
  remove,
};
struct FileRecord {
  FileAction action;
  uint32_t path_size;
};

struct LossRecord {
  double sum;
  double count;      ///< targets
  double gradients;  ///< 1 if they were on
};

/// One of Tensors, which is a list of these, each followed by its name, its sizes as int64 and its
/// values, and padded to kAlignment.
struct TensorRecord {
  int32_t scalar_type;  ///< c10::ScalarType
  uint32_t buffer;      ///< 1: a buffer; 0: a parameter
  uint32_t name_size;
  uint32_t dimensions;
  uint64_t elements;
  uint64_t bytes;  ///< of values that follow; 0: none do
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

/// What the device does not tell is kUnknown.
struct GpuSample {
  uint64_t used, total;  ///< bytes of memory
  uint32_t number;       ///< as in gpu_name
  uint32_t utilisation;  ///< percent of the time in which a kernel ran
  uint32_t milliwatts;
  uint32_t sm_clock;      ///< MHz
  uint32_t memory_clock;  ///< MHz
  uint32_t celsius;
};

struct StepRecord {
  uint64_t step;  ///< from 1
  uint64_t begin;
  uint64_t phases[kStepPhases];  ///< nanoseconds
  uint64_t collectives;          ///< nanoseconds in which at least one was under way
  uint64_t targets;              ///< in this rank's batches
  double learning_rate;
};

struct StepLossRecord {
  uint64_t step;
  double mean;
};

/// Sums of one rank: over all ranks they make the mean that a trainer reports.
struct EvaluationRecord {
  uint64_t step;   ///< optimizer steps that were done before
  uint64_t count;  ///< targets
  double sum;      ///< of losses
};

/// Sums of one rank, as those of losses.
struct MeasuredRecord {
  uint64_t step;  ///< optimizer steps that were done before
  uint64_t root;  ///< 1: the metric is the root of sum / count; 0: it is sum / count
  double sum, count;
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
struct GradientSizesRecord {
  uint64_t step;
  uint64_t zeros;                ///< in no bin
  double largest;                ///< size of an element
  double sum;                    ///< of sizes
  double sum_of_squares;         ///< its root is the norm
  uint32_t bins[kGradientBins];  ///< the first and the last one hold what is beyond them as well
};

}  // namespace instrumentation

#pragma once
/// Evidence of a run for a checker: an append-only log in a memory-mapped file, so that a rank that
/// dies or hangs has spoken. Off unless DISTRIBUTED_UTILS_RECORD names a file; off, nothing is
/// wrapped and a seam costs one branch.
///
/// The file: a Header, then records. Each record is a RecordHeader and `size` bytes, padded to 8.
/// The runner makes the file before it starts the rank: what it is long, the log can hold. Numbers
/// are in the machine's own byte order.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace distributed_utils::recording {

/// What a record describes. Values are part of the file format: append, never renumber.
enum class Kind : uint16_t {
  start = 1,       ///< recording began: text, /proc/self/maps (turns addresses into source lines)
  group = 2,       ///< a process group: GroupRecord, its name, its world ranks as uint32 (none if
                   ///< the program made it without distributed_utils)
  collective = 3,  ///< before the call: CollectiveRecord, then return addresses as uint64; of a
                   ///< call by another thread than the main one, then those that note_place() noted
  completed = 4,   ///< a collective has ended: CompletedRecord
  fetch = 5,       ///< a dataset fetched: uint64 split (tasks::Split), then uint64 indices
  device = 6,      ///< the device a task was given: text, "cpu" or "cuda:1"
  loss = 7,  ///< a task's loss: double sum, double count, double 1 if gradients were on, else 0
  parameters = 8,  ///< before a first gradients record: per parameter, TensorRecord and name
  gradients = 9,   ///< before an optimizer step: per parameter in that order, its gradient's bytes
  exit = 10,       ///< a regular exit: empty
  values = 11,     ///< before an optimizer step: as gradients, the parameters' own bytes
  reported = 12,   ///< a mean loss that the trainer reports: double
  shutdown = 13,   ///< a process group is being shut down: uint64 its number
  sampler = 14,    ///< a DistributedSampler was made: SamplerRecord
  set_epoch = 15,  ///< of a sampler and all its copies: uint64 its number, uint64 epoch
  printed = 16,    ///< print0: uint64 1 if it printed, which only rank 0 does, else 0
  saved = 17,      ///< save0: uint64 1 if it wrote, which only rank 0 does, else 0
  taken = 18,      ///< a fetched batch went to its device to be used: as fetch
};

constexpr uint64_t kMagic = 0x3143455244574c31;  // of format 1

struct Header {
  uint64_t magic;
  std::atomic<uint64_t> reserved;  ///< bytes of the file given out to records, this header included
  std::atomic<uint64_t> dropped;   ///< records that no longer fitted
};

struct RecordHeader {
  uint32_t size;  ///< bytes of payload
  Kind kind;
  std::atomic<uint16_t> ready;  ///< 1 once the payload is whole
  uint64_t nanoseconds;         ///< CLOCK_MONOTONIC: comparable between ranks of one machine
  uint64_t thread;              ///< the kernel's thread id
};

struct GroupRecord {
  uint32_t group;  ///< number of the group in this process, in the order of making
  uint32_t rank;
  uint32_t size;
  uint32_t name_size;
};

struct CollectiveRecord {
  uint64_t sequence;  ///< of the group, from 0
  uint32_t group;
  uint8_t op_type;     ///< c10d::OpType
  uint8_t reduce_op;   ///< c10d::ReduceOp::RedOpType; 255: none
  int8_t scalar_type;  ///< c10::ScalarType; -1: no tensor
  uint8_t device;      ///< c10::DeviceType of the first tensor
  int32_t root;        ///< root or peer; -1: none
  uint32_t frames;     ///< return addresses that follow, innermost first
  uint64_t elements;   ///< in the input tensors (send, recv, broadcast: in the tensors)
};

struct CompletedRecord {
  uint64_t sequence;
  uint32_t group;
  uint32_t failed;  ///< 1: with an exception
};

struct TensorRecord {
  int32_t scalar_type;
  uint32_t name_size;
  uint64_t elements;
};

struct SamplerRecord {
  uint64_t number;  ///< of the sampler in this process, in the order of making
  uint64_t dataset_size, num_replicas, rank, seed;
  uint64_t shuffle, drop_last, pad;  ///< 0 or 1
};

/// True if this process records.
bool enabled();

/// Appends one record. Thread-safe and lock-free; what no longer fits is dropped and counted.
void record(Kind kind, std::span<const std::byte> payload);
void record(Kind kind, std::string_view text);
void record_number(Kind kind, uint64_t number);

/// Notes where the main thread is. Work that it starts there and another thread does (autograd's,
/// on GPUs) is then shown at this place. To be called just before, and only if enabled().
void note_place();

}  // namespace distributed_utils::recording

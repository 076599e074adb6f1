#include "recorded_call.hpp"

#include <execinfo.h>

#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>
#include <span>

#include "completion_poller.hpp"
#include "distributed_utils/monitoring.hpp"
#include "distributed_utils/recording.hpp"
#include "monitored_calls.hpp"

namespace distributed_utils::detail {
namespace {

constexpr size_t kMaxFrames = 64;
constexpr uint8_t kNoReduceOp = 255;

using Frames = std::vector<void*>;

Frames frames_here() {
  Frames frames(kMaxFrames);
  frames.resize(static_cast<size_t>(backtrace(frames.data(), static_cast<int>(frames.size()))));
  return frames;
}

bool on_main_thread() { return syscall(SYS_gettid) == getpid(); }

// Where the main thread was when it last said so.
struct NotedPlace {
  std::mutex mutex;
  Frames frames;
};

NotedPlace& noted_place() {
  static auto* const place = new NotedPlace;  // leaked: other threads run until the very end
  return *place;
}

Frames frames_of_call() {
  auto frames = frames_here();
  if (on_main_thread()) return frames;
  const std::lock_guard lock(noted_place().mutex);
  const auto& noted = noted_place().frames;
  frames.insert(frames.end(), noted.begin(), noted.end());
  return frames;
}

template <typename T>
void append(std::vector<std::byte>& to, const T* values, size_t count) {
  const auto bytes = std::as_bytes(std::span(values, count));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

/// Null for a work that has none; c10 says so by an exception.
c10::intrusive_ptr<c10::ivalue::Future> future_of(c10d::Work& work) {
  try {
    return work.getFuture();
  } catch (const c10::Error&) {
    return nullptr;
  }
}

}  // namespace

std::shared_ptr<RecordedGroup> record_group(const std::string& name, int rank, int size,
                                            const std::vector<int>& ranks) {
  if (!recording::enabled() && !monitoring::enabled()) return nullptr;
  static std::atomic<uint32_t> next_number = 0;
  auto group = std::make_shared<RecordedGroup>(next_number.fetch_add(1));
  monitor_group(group->number, name, rank, size);
  const recording::GroupRecord record = {
      .group = group->number,
      .rank = static_cast<uint32_t>(rank),
      .size = static_cast<uint32_t>(size),
      .name_size = static_cast<uint32_t>(name.size()),
  };
  std::vector<std::byte> payload;
  append(payload, &record, 1);
  append(payload, name.data(), name.size());
  append(payload, ranks.data(), ranks.size());
  recording::record(recording::Kind::group, payload);
  return group;
}

uint64_t record_issued(RecordedGroup& group, const RecordedCall& call,
                       const std::vector<at::Tensor>& tensors, bool on_gpu) {
  const auto frames = recording::enabled() ? frames_of_call() : Frames();
  uint64_t size = 0;
  recording::CollectiveRecord record = {
      .sequence = group.next_sequence.fetch_add(1),
      .group = group.number,
      .op_type = static_cast<uint8_t>(call.type),
      .reduce_op = call.op ? static_cast<uint8_t>(*call.op) : kNoReduceOp,
      .scalar_type = -1,
      .device = 0,
      .root = static_cast<int32_t>(call.root),
      .frames = static_cast<uint32_t>(frames.size()),
      .elements = 0,
  };
  for (const at::Tensor& tensor : tensors) {
    record.scalar_type = static_cast<int8_t>(tensor.scalar_type());
    record.device = static_cast<uint8_t>(tensor.device().type());
    record.elements += static_cast<uint64_t>(tensor.numel());
    size += tensor.nbytes();
  }
  std::vector<std::byte> payload;
  append(payload, &record, 1);
  append(payload, frames.data(), frames.size());
  recording::record(recording::Kind::collective, payload);
  monitor_issued(group.number, record.sequence, record.op_type, size, on_gpu);
  return record.sequence;
}

void record_completed(uint32_t group, uint64_t sequence, bool failed, uint64_t on_gpu) {
  monitor_ended(group, sequence, failed, on_gpu);
  const recording::CompletedRecord record = {sequence, group, failed ? 1U : 0U};
  recording::record(recording::Kind::completed, std::as_bytes(std::span(&record, 1)));
}

void record_shutdown(uint64_t group) { recording::record_number(recording::Kind::shutdown, group); }

bool runs_on_gpu(const std::string& backend) { return backend == "nccl"; }

bool record_end_of(const c10::intrusive_ptr<c10d::Work>& work, uint32_t group, uint64_t sequence,
                   bool on_gpu) {
  if (on_gpu) {
    record_end_by_polling(work, group, sequence);
    return true;
  }
  const auto future = future_of(*work);
  if (!future) return false;
  future->addCallback(
      [sequence, group](c10::ivalue::Future& done) {
        record_completed(group, sequence, done.hasError());
      },
      /*uses_future=*/false);
  return true;
}

}  // namespace distributed_utils::detail

namespace distributed_utils::recording {

void note_place() {
  if (!detail::on_main_thread()) return;
  auto frames = detail::frames_here();
  auto& place = detail::noted_place();
  const std::lock_guard lock(place.mutex);
  place.frames = std::move(frames);
}

}  // namespace distributed_utils::recording

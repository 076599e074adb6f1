#include "calls.hpp"

#include <execinfo.h>

#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>
#include <span>

#include "call_times.hpp"
#include "completion_poller.hpp"
#include "instrumentation/monitoring.hpp"
#include "instrumentation/recording.hpp"
#include "products.hpp"

namespace instrumentation {
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

CollectiveRecord describe(const RecordedCall& call, const std::vector<at::Tensor>& tensors) {
  CollectiveRecord record{};
  record.products = products_begun();
  record.root = static_cast<int32_t>(call.root);
  record.tag = call.tag;
  record.op_type = static_cast<uint8_t>(call.type);
  record.reduce_op = call.op ? static_cast<uint8_t>(*call.op) : kNoReduceOp;
  record.scalar_type = -1;
  for (const at::Tensor& tensor : tensors) {
    record.scalar_type = static_cast<int8_t>(tensor.scalar_type());
    record.device = static_cast<uint8_t>(tensor.device().type());
    record.elements += static_cast<uint64_t>(tensor.numel());
    record.bytes += tensor.nbytes();
  }
  return record;
}

}  // namespace

std::shared_ptr<RecordedGroup> record_group(const std::string& name, int rank, int size,
                                            const std::vector<int>& ranks) {
  static std::atomic<uint32_t> next_number = 0;
  auto group = std::make_shared<RecordedGroup>(next_number.fetch_add(1));
  const GroupRecord record = {
      .group = group->number,
      .rank = static_cast<uint32_t>(rank),
      .size = static_cast<uint32_t>(size),
      .name_size = static_cast<uint32_t>(name.size()),
  };
  std::vector<std::byte> payload;
  append(payload, &record, 1);
  append(payload, name.data(), name.size());
  append(payload, ranks.data(), ranks.size());
  recording::record(Kind::group, payload);
  monitoring::record(Kind::group, payload);
  return group;
}

CallId record_issued(RecordedGroup& group, const RecordedCall& call,
                     const std::vector<at::Tensor>& tensors, bool on_gpu) {
  auto record = describe(call, tensors);
  record.sequence = group.next_sequence.fetch_add(1);
  record.group = group.number;
  if (recording::enabled()) {
    const auto frames = frames_of_call();
    record.frames = static_cast<uint32_t>(frames.size());
    std::vector<std::byte> payload;
    append(payload, &record, 1);
    append(payload, frames.data(), frames.size());
    recording::record(Kind::collective, payload);
    record.frames = 0;
  }
  time_issued(record, on_gpu);
  if (monitoring::wants_details()) monitoring::record_one(Kind::collective, record);
  return {record.group, record.sequence};
}

void record_completed(CallId call, bool failed, uint64_t on_gpu) {
  const CompletedRecord record = {
      .sequence = call.sequence, .on_gpu = on_gpu, .group = call.group, .failed = failed ? 1U : 0U};
  time_completed(record);
  recording::record_one(Kind::completed, record);
  if (monitoring::wants_details()) monitoring::record_one(Kind::completed, record);
}

void record_waited(CallId call, uint32_t done) {
  if (!recording::enabled()) return;
  recording::record_one(Kind::waited, WaitedRecord{.sequence = call.sequence,
                                                   .products = products_begun(),
                                                   .group = call.group,
                                                   .done = done});
}

void record_shutdown(uint32_t group) {
  recording::record_one(Kind::shutdown, static_cast<uint64_t>(group));
}

bool runs_on_gpu(const std::string& backend) { return backend == "nccl"; }

bool record_end_of(const c10::intrusive_ptr<c10d::Work>& work, CallId call, bool on_gpu) {
  if (on_gpu) {
    record_end_by_polling(work, call);
    return true;
  }
  const auto future = future_of(*work);
  if (!future) return false;
  future->addCallback(
      [call](c10::ivalue::Future& done) { record_completed(call, done.hasError()); },
      /*uses_future=*/false);
  return true;
}

void recording::note_place() {
  if (!on_main_thread()) return;
  auto frames = frames_here();
  auto& place = noted_place();
  const std::lock_guard lock(place.mutex);
  place.frames = std::move(frames);
}

}  // namespace instrumentation

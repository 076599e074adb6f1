#include "monitor/record.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string_view>

#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker::monitor {

namespace format = distributed_utils::monitoring;
using format::Kind;

namespace {

// The first `sizeof(T)` bytes as a T; nothing if there are fewer.
template <class T>
std::optional<T> head_of(std::string_view bytes) {
  if (bytes.size() < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::string read_chunks(const std::filesystem::path& file, size_t last) {
  std::error_code unreadable;  // which reading itself then tells
  const auto chunks = std::filesystem::file_size(file, unreadable) / format::kChunk;
  if (unreadable || last >= chunks || chunks - last < 2) return read_file(file);
  std::ifstream in(file, std::ios::binary);
  std::string bytes(format::kChunk, '\0');
  in.read(bytes.data(), format::kChunk);
  in.seekg(static_cast<std::streamoff>((chunks - last) * format::kChunk));
  bytes.append(std::istreambuf_iterator<char>(in), {});
  return bytes;
}

Header read_header(const std::filesystem::path& file, std::string_view bytes) {
  const auto header = head_of<Header>(bytes);
  if (!header) throw Error(file.string() + " is too short for a record of a run.");
  if (header->magic != format::kMagic) {
    throw Error(file.string() + " is no record of a run, or of another version of this course.");
  }
  auto unchecked = *header;
  unchecked.check = 0;
  if (format::checksum(std::as_bytes(std::span(&unchecked, 1))) != header->check ||
      std::memchr(header->host, 0, sizeof header->host) == nullptr) {
    throw Error(file.string() + ": its beginning is damaged; nothing in it can be trusted.");
  }
  return *header;
}

class Reader {
 public:
  Reader(RankRecord& into, std::string_view bytes) : into_(into), bytes_(bytes) {}

  void read() {
    for (size_t chunk = 0; chunk < bytes_.size(); chunk += format::kChunk) {
      const size_t end = std::min<size_t>(chunk + format::kChunk, bytes_.size());
      read_chunk(chunk == 0 ? sizeof(Header) : chunk, end);
    }
    into_.cut_short = bytes_.size() % format::kChunk != 0;
  }

 private:
  // Up to the first record that is not whole: where nothing was written yet, a process was killed,
  // or there is damage.
  void read_chunk(size_t at, size_t end) {
    while (at + sizeof(format::RecordHeader) <= end) {
      const auto head = *head_of<format::RecordHeader>(bytes_.substr(at));
      const auto rest = bytes_.substr(at + sizeof head, end - at - sizeof head);
      if (head.check == 0) {
        count_lost(at, end);
        return;
      }
      if (head.size > rest.size()) {
        into_.lost += written(at, end);
        return;
      }
      const auto payload =
          head.kind == Kind::padding ? std::string_view() : rest.substr(0, head.size);
      if (format::record_check(head, std::as_bytes(std::span(payload))) != head.check) {
        into_.lost += written(at, end);
        return;
      }
      take(head, payload);
      const size_t size = sizeof head + head.size;
      at += (size + format::kAlignment - 1) / format::kAlignment * format::kAlignment;
    }
  }

  // Bytes up to the last one that is no zero: what follows it was never written.
  size_t written(size_t at, size_t end) const {
    return bytes_.substr(at, end - at).find_last_not_of('\0') + 1;
  }

  // Nothing more was written, unless something that is no zero follows far behind.
  void count_lost(size_t at, size_t end) {
    // A process killed while it wrote leaves the beginning of one record.
    constexpr size_t kOneRecord = 4096;
    if (const size_t size = written(at, end); size > kOneRecord) into_.lost += size;
  }

  double seconds(uint64_t nanoseconds) const {
    return static_cast<double>(static_cast<int64_t>(nanoseconds - into_.header.nanoseconds)) * 1e-9;
  }

  void take(const format::RecordHeader& head, std::string_view payload) {
    if (head.kind == Kind::padding) return;
    const double time = seconds(head.nanoseconds);
    into_.last = std::max(into_.last, time);
    switch (head.kind) {
      case Kind::configuration:
        return take_configuration(payload);
      case Kind::device:
        into_.device = payload;
        return;
      case Kind::group:
        return take_group(payload);
      case Kind::process:
        return take_sample(into_.process, time, payload);
      case Kind::node:
        return take_sample(into_.node, time, payload);
      case Kind::gradients:
        return take_sample(into_.gradients, time, payload);
      case Kind::gpu:
        return take_sample(into_.gpus, time, payload);
      case Kind::evaluation:
        return take_evaluation(time, payload);
      case Kind::gpu_name:
        if (const auto number = head_of<uint64_t>(payload)) {
          into_.gpu_names[static_cast<uint32_t>(*number)] = payload.substr(sizeof *number);
        }
        return;
      case Kind::span:
        return take_span(time, payload);
      case Kind::step:
        return take_step(time, payload);
      case Kind::loss:
        return take_loss(payload);
      case Kind::collective:
        return take_collective(time, payload);
      case Kind::traffic:
        if (const auto traffic = head_of<TrafficRecord>(payload)) {
          into_.traffic[static_cast<uint8_t>(traffic->op_type)] = *traffic;
        }
        return;
      case Kind::memory:
        into_.memory = head_of<MemoryRecord>(payload);
        return;
      case Kind::end:
        into_.ended = true;
        return;
      default:  // of a newer version, which only adds kinds
        return;
    }
  }

  template <class Sample>
  static void take_sample(std::vector<At<Sample>>& into, double time, std::string_view payload) {
    if (const auto sample = head_of<Sample>(payload)) into.push_back({time, *sample});
  }

  void take_configuration(std::string_view text) {
    for (const auto& line : split_lines(text)) {
      const auto equals = line.find('=');
      if (equals != std::string::npos) {
        into_.configuration[line.substr(0, equals)] = line.substr(equals + 1);
      }
    }
  }

  void take_group(std::string_view payload) {
    const auto group = head_of<format::GroupRecord>(payload);
    if (!group) return;
    const auto name = payload.substr(sizeof *group);
    into_.groups[group->group] = {std::string(name.substr(0, group->name_size)), group->rank,
                                  group->size};
  }

  void take_evaluation(double time, std::string_view payload) {
    const auto read = head_of<format::EvaluationRecord>(payload);
    if (!read || read->count == 0) return;
    into_.evaluations.push_back({time,
                                 {read->step, std::string(payload.substr(sizeof *read)), read->sum,
                                  static_cast<double>(read->count)}});
  }

  void take_span(double time, std::string_view payload) {
    const auto span = head_of<format::SpanRecord>(payload);
    if (!span || span->phase > Phase::checkpoint) return;
    into_.spans.push_back({seconds(span->begin), time, span->step, span->phase});
  }

  void take_step(double time, std::string_view payload) {
    const auto step = head_of<format::StepRecord>(payload);
    if (!step) return;
    Step read;
    read.begin = seconds(step->begin);
    read.end = time;
    read.number = static_cast<uint32_t>(step->step);
    read.targets = static_cast<uint32_t>(step->targets);
    for (size_t i = 0; i < kStepPhases; ++i) {
      read.phases[i] = static_cast<float>(static_cast<double>(step->phases[i]) * 1e-9);
    }
    read.collectives = static_cast<float>(static_cast<double>(step->collectives) * 1e-9);
    read.learning_rate = static_cast<float>(step->learning_rate);
    into_.steps.push_back(read);
  }

  // It comes after its step, at times a few steps later.
  void take_loss(std::string_view payload) {
    const auto loss = head_of<format::LossRecord>(payload);
    if (!loss) return;
    for (auto step = into_.steps.rbegin(); step != into_.steps.rend(); ++step) {
      if (step->number > loss->step) continue;
      if (step->number == loss->step) {
        step->loss = std::isnan(loss->mean) ? std::numeric_limits<double>::infinity() : loss->mean;
      }
      return;
    }
  }

  void take_collective(double time, std::string_view payload) {
    const auto call = head_of<format::CollectiveRecord>(payload);
    if (!call) return;
    const double on_gpu = static_cast<double>(call->on_gpu) * 1e-9;
    into_.collectives.push_back({on_gpu > 0 ? time - on_gpu : seconds(call->begin), time,
                                 call->sequence, call->bytes, call->group, call->op_type,
                                 call->failed != 0, on_gpu});
  }

  RankRecord& into_;
  std::string_view bytes_;
};

}  // namespace

RankRecord read_record(const std::filesystem::path& file, size_t last_chunks) {
  const auto bytes = read_chunks(file, last_chunks);
  RankRecord record;
  record.file = file;
  record.header = read_header(file, bytes);
  Reader(record, bytes).read();
  return record;
}

void shift(RankRecord& record, double seconds) {
  for (auto& step : record.steps) {
    step.begin += seconds;
    step.end += seconds;
  }
  for (auto& span : record.spans) {
    span.begin += seconds;
    span.end += seconds;
  }
  for (auto& call : record.collectives) {
    call.begin += seconds;
    call.end += seconds;
  }
  for (auto& at : record.process) at.time += seconds;
  for (auto& at : record.node) at.time += seconds;
  for (auto& at : record.gpus) at.time += seconds;
  for (auto& at : record.gradients) at.time += seconds;
  for (auto& at : record.evaluations) at.time += seconds;
  record.last += seconds;
}

}  // namespace checker::monitor

#include "monitor/record.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string_view>

#include "evidence/records.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker::monitor {

namespace format = instrumentation;
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

Header header_of(const std::filesystem::path& file, std::string_view bytes) {
  if (bytes.size() < sizeof(Header)) {
    throw Error(file.string() + " is too short for a record of a run.");
  }
  const auto read = read_header(bytes);
  if (!read) {
    throw Error(file.string() +
                " is not a record of a run, or it belongs to another version of this course.");
  }
  if (read->damaged) {
    throw Error(file.string() + ": its beginning is damaged, so it cannot be used.");
  }
  return read->header;
}

class Reader {
 public:
  explicit Reader(RankRecord& into) : into_(into) {}

  void read(std::string_view bytes) {
    into_.lost = read_records(bytes, [&](const RecordRead& record) { take(record); });
    into_.cut_short = bytes.size() % format::kChunk != 0;
  }

 private:
  double seconds(uint64_t nanoseconds) const {
    return static_cast<double>(static_cast<int64_t>(nanoseconds - into_.header.nanoseconds)) * 1e-9;
  }

  void take(const RecordRead& record) {
    const auto payload = record.payload;
    const double time = seconds(record.nanoseconds);
    into_.last = std::max(into_.last, time);
    switch (record.kind) {
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
      case Kind::gradient_sizes:
        return take_sample(into_.gradients, time, payload);
      case Kind::gpu:
        return take_sample(into_.gpus, time, payload);
      case Kind::evaluation:
        return take_evaluation(time, payload);
      case Kind::measured:
        return take_measured(time, payload);
      case Kind::gpu_name:
        if (const auto number = head_of<uint64_t>(payload)) {
          into_.gpu_names[static_cast<uint32_t>(*number)] = payload.substr(sizeof *number);
        }
        return;
      case Kind::phase:
        return take_phase(time, payload);
      case Kind::step:
        return take_step(time, payload);
      case Kind::step_loss:
        return take_loss(payload);
      case Kind::collective:
        return take_collective(time, payload);
      case Kind::completed:
        return take_completed(time, payload);
      case Kind::traffic:
        if (const auto traffic = head_of<TrafficRecord>(payload)) {
          into_.traffic[static_cast<uint8_t>(traffic->op_type)] = *traffic;
        }
        return;
      case Kind::memory:
        into_.memory = head_of<MemoryRecord>(payload);
        return;
      case Kind::exit:
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

  void take_measured(double time, std::string_view payload) {
    const auto read = head_of<format::MeasuredRecord>(payload);
    if (!read || read->count == 0) return;
    into_.measured.push_back({time,
                              {read->step, std::string(payload.substr(sizeof *read)), read->sum,
                               read->count, read->root != 0}});
  }

  // Each ends the one before.
  void take_phase(double time, std::string_view payload) {
    const auto phase = head_of<format::PhaseRecord>(payload);
    if (!phase) return;
    if (phase_ && phase->phase != Phase::dropped) {
      into_.spans.push_back({phase_began_, time, phase_->step, phase_->phase});
    }
    phase_.reset();
    if (phase->phase < Phase::none) phase_ = phase;
    phase_began_ = time;
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
    const auto loss = head_of<format::StepLossRecord>(payload);
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
    under_way_[{call->group, call->sequence}] = {.begin = time,
                                                 .sequence = call->sequence,
                                                 .bytes = call->bytes,
                                                 .group = call->group,
                                                 .op_type = call->op_type};
  }

  void take_completed(double time, std::string_view payload) {
    const auto end = head_of<format::CompletedRecord>(payload);
    if (!end) return;
    const auto found = under_way_.find({end->group, end->sequence});
    if (found == under_way_.end()) return;
    auto call = found->second;
    under_way_.erase(found);
    call.end = time;
    call.failed = end->failed != 0;
    call.on_gpu = static_cast<double>(end->on_gpu) * 1e-9;
    if (call.on_gpu > 0) call.begin = time - call.on_gpu;
    into_.collectives.push_back(call);
  }

  RankRecord& into_;
  std::optional<format::PhaseRecord> phase_;  // that runs
  double phase_began_ = 0;
  std::map<std::pair<uint32_t, uint64_t>, Collective> under_way_;
};

}  // namespace

RankRecord read_record(const std::filesystem::path& file, size_t last_chunks) {
  const auto bytes = read_chunks(file, last_chunks);
  RankRecord record;
  record.file = file;
  record.header = header_of(file, bytes);
  Reader(record).read(bytes);
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
  for (auto& at : record.measured) at.time += seconds;
  record.last += seconds;
}

}  // namespace checker::monitor

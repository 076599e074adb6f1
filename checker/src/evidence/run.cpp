#include "evidence/run.hpp"

#include <algorithm>
#include <map>

namespace checker {

namespace {

namespace recording = distributed_utils::recording;

// Goes through a log once, in order.
class Interpreter {
 public:
  explicit Interpreter(RankSeen& rank) : rank_(rank) {}

  void take(const Event& event, size_t place) {
    switch (event.kind) {
      case Kind::group:
        return group(event);
      case Kind::collective:
        return collective(event, place);
      case Kind::completed:
        return completed(event);
      case Kind::shutdown:
        return shutdown(event, place);
      case Kind::fetch:
        return fetch(event, place);
      case Kind::loss:
        return loss(event);
      case Kind::parameters:
        return parameters(event);
      case Kind::values:
        rank_.steps.push_back({.values = event.numbers<double>(), .gradients = {}});
        return;
      case Kind::gradients:
        return gradients(event);
      case Kind::reported:
        if (const auto value = event.head<double>()) rank_.reported.push_back(*value);
        return;
      case Kind::sampler:
        if (const auto made = event.head<recording::SamplerRecord>())
          rank_.samplers.push_back(*made);
        return;
      case Kind::set_epoch:
        if (const auto set = event.head<SetEpoch>()) rank_.epochs_set.push_back(*set);
        return;
      case Kind::device:
        rank_.devices.push_back(event.payload);
        return;
      case Kind::exit:
        rank_.left_regularly = true;
        return;
      case Kind::start:
        return;
    }
  }

 private:
  void group(const Event& event) {
    const auto record = event.head<recording::GroupRecord>();
    if (!record || event.payload.size() < sizeof *record + record->name_size) return;
    rank_.groups.push_back(
        {.number = record->group,
         .rank = record->rank,
         .size = record->size,
         .name = event.payload.substr(sizeof *record, record->name_size),
         .members = event.numbers<uint32_t>(sizeof *record + record->name_size)});
  }

  void collective(const Event& event, size_t place) {
    const auto call = event.head<recording::CollectiveRecord>();
    if (!call) return;
    open_[{call->group, call->sequence}] = rank_.collectives.size();
    CollectiveSeen seen;
    seen.call = *call;
    seen.frames = event.numbers<uint64_t>(sizeof *call);
    seen.event = place;
    rank_.collectives.push_back(std::move(seen));
  }

  void completed(const Event& event) {
    const auto end = event.head<recording::CompletedRecord>();
    if (!end) return;
    const auto found = open_.find({end->group, end->sequence});
    if (found == open_.end()) return;
    auto& collective = rank_.collectives[found->second];
    collective.completed = true;
    collective.failed = end->failed != 0;
  }

  void shutdown(const Event& event, size_t place) {
    if (!rank_.shutdown_event) rank_.shutdown_event = place;
    const auto number = event.head<uint64_t>();
    for (auto& group : rank_.groups) {
      if (number && group.number == *number) group.shut_down = true;
    }
  }

  void fetch(const Event& event, size_t place) {
    const auto split = event.head<uint64_t>();
    if (!split || *split > 2) return;
    BatchSeen batch;
    batch.ids = event.numbers<uint64_t>(sizeof *split);
    batch.event = place;
    const auto kind = static_cast<Split>(*split);
    if (rank_.passes.empty() || rank_.passes.back().split != kind || anew(batch)) {
      waiting_for_loss_.clear();  // a pass that was broken off
      rank_.passes.push_back(
          {.split = kind, .epoch = rank_.passes_over(kind).size(), .batches = {}});
    }
    rank_.passes.back().batches.push_back(std::move(batch));
    waiting_for_loss_.push_back({rank_.passes.size() - 1, rank_.passes.back().batches.size() - 1});
  }

  // Two ways through one split with nothing between them: a sample comes again.
  bool anew(const BatchSeen& batch) const {
    const auto seen = rank_.passes.back().ids();
    return !batch.ids.empty() && std::ranges::find(seen, batch.ids.front()) != seen.end() &&
           seen.front() == batch.ids.front();
  }

  BatchSeen& at(std::pair<size_t, size_t> place) {
    return rank_.passes[place.first].batches[place.second];
  }

  // Loaders may fetch ahead: losses come in the order of the batches.
  void loss(const Event& event) {
    const auto numbers = event.numbers<double>();
    if (numbers.size() < 3 || waiting_for_loss_.empty()) return;
    auto& batch = at(waiting_for_loss_.front());
    batch.loss_sum = numbers[0];
    batch.loss_count = numbers[1];
    batch.with_gradients = numbers[2] != 0;
    last_loss_ = waiting_for_loss_.front();
    waiting_for_loss_.erase(waiting_for_loss_.begin());
  }

  void parameters(const Event& event) {
    rank_.parameters.clear();  // the last optimizer made is the one that steps
    for (size_t at = 0; at + sizeof(recording::TensorRecord) <= event.payload.size();) {
      recording::TensorRecord record{};
      std::memcpy(&record, event.payload.data() + at, sizeof record);
      at += sizeof record;
      if (record.name_size > event.payload.size() - at) return;
      rank_.parameters.push_back(
          {.name = event.payload.substr(at, record.name_size), .elements = record.elements});
      at += record.name_size;
    }
  }

  void gradients(const Event& event) {
    if (rank_.steps.empty()) return;
    rank_.steps.back().gradients = event.numbers<double>();
    if (last_loss_) at(*last_loss_).step = rank_.steps.size() - 1;
  }

  RankSeen& rank_;
  std::map<std::pair<uint32_t, uint64_t>, size_t> open_;
  std::vector<std::pair<size_t, size_t>> waiting_for_loss_;
  std::optional<std::pair<size_t, size_t>> last_loss_;
};

}  // namespace

std::vector<uint64_t> Pass::ids() const {
  std::vector<uint64_t> all;
  for (const auto& batch : batches) all.insert(all.end(), batch.ids.begin(), batch.ids.end());
  return all;
}

std::vector<const Pass*> RankSeen::passes_over(Split split) const {
  std::vector<const Pass*> found;
  for (const auto& pass : passes) {
    if (pass.split == split) found.push_back(&pass);
  }
  return found;
}

void interpret(RankSeen& rank) {
  Interpreter interpreter(rank);
  for (size_t i = 0; i < rank.log.events.size(); ++i) interpreter.take(rank.log.events[i], i);
}

}  // namespace checker

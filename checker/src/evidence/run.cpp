#include "evidence/run.hpp"

#include <algorithm>
#include <map>
#include <string_view>

#include "evidence/samples.hpp"
#include "evidence/steps.hpp"

namespace checker {

namespace {

namespace format = instrumentation;

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Goes through a log once, in order.
class Interpreter {
 public:
  Interpreter(RankSeen& rank, Holding holding) : rank_(rank), holding_(holding) {}

  void end() {
    steps_.end();
    if (is_cut_off()) losses_.pop_back();
    rank_.passes = passes_of(std::move(losses_), samples_.split_sizes(), rank_.place.world_size);
  }

  void take(const Event& event, size_t place) {
    switch (event.kind) {
      case Kind::group:
        return group(event);
      case Kind::collective:
        return collective(event, place);
      case Kind::completed:
        return completed(event, place);
      case Kind::shutdown:
        return shutdown(event, place);
      case Kind::fetch:
        return fetch(event, place);
      case Kind::samples:
        return samples_.gave(event);
      case Kind::targets:
        return samples_.targets(event.numbers<uint64_t>());
      case Kind::loss:
        return loss(event, place);
      case Kind::backward:
        if (const auto number = event.head<uint64_t>(); number && *number < losses_.size())
          losses_[*number].backward = true;
        return;
      case Kind::pieces:
        if (holding_ == Holding::parameters_or_pieces) steps_.pieces(tensors(event));
        return;
      case Kind::unit:
        return unit(event);
      case Kind::allocated:
        if (const auto bytes = event.head<format::AllocatedRecord>())
          rank_.memory.push_back({.bytes = *bytes, .event = place});
        return;
      case Kind::stepping:
        return steps_.stepping(event);
      case Kind::learning_rates:
        return steps_.learning_rates(event);
      case Kind::values:
        return steps_.values(event);
      case Kind::gradients:
        return steps_.gradients(event, place);
      case Kind::model:
        return steps_.model(tensors(event));
      case Kind::buffers:
        rank_.buffers.push_back({.tensors = tensors(event), .event = place});
        return;
      case Kind::phase:
        if (const auto mark = event.head<format::PhaseRecord>())
          rank_.phases.push_back({.mark = *mark, .event = place});
        return;
      case Kind::forward:
        return forward(event, place);
      case Kind::generator:
        generator_ = place;
        return;
      case Kind::reported:
        return reported(event);
      case Kind::splits:
        rank_.splits = split_lines(event.payload);
        return;
      case Kind::metrics:
        rank_.metrics = split_lines(event.payload);
        return;
      case Kind::waited:
        return waited(event, place);
      case Kind::setup:
        return setup(event);
      case Kind::sampler:
        if (const auto made = event.head<format::SamplerRecord>()) rank_.samplers.push_back(*made);
        return;
      case Kind::set_epoch:
        if (const auto set = event.head<SetEpoch>()) rank_.epochs_set.push_back(*set);
        return;
      case Kind::printed:
        if (event.head<uint64_t>() == 1U) rank_.prints.push_back(place);
        return;
      case Kind::saved:
        if (event.head<uint64_t>() == 1U) rank_.saves.push_back(place);
        return;
      case Kind::progress:
        if (const auto plan = event.head<format::ProgressRecord>())
          rank_.planned_world = plan->world_size;
        return;
      case Kind::file:
        return file(event, place);
      case Kind::prepared:
        if (const auto found = event.head<uint64_t>())
          rank_.preparations.push_back(
              {.makes = *found == 0, .name = event.payload.substr(sizeof *found), .event = place});
        return;
      case Kind::result:
        for (auto& tensor : tensors(event))
          rank_.results.push_back({.tensor = std::move(tensor), .event = place});
        return;
      case Kind::read:
        if (!rank_.first_read) rank_.first_read = place;
        return;
      case Kind::device:
        rank_.devices.push_back(event.payload);
        return;
      case Kind::exit:
        rank_.left_regularly = true;
        return;
      default:  // for people, or of a newer version, which only adds kinds
        return;
    }
  }

 private:
  // A rank that was ended between a loss and its backward() did not evaluate with that loss.
  bool is_cut_off() const {
    if (rank_.left_regularly || losses_.empty()) return false;
    const auto& last = losses_.back();
    const bool went_on = !rank_.collectives.empty() && rank_.collectives.back().event > last.event;
    return last.with_gradients && !last.trains() && !went_on;
  }

  void setup(const Event& event) {
    const auto end = event.payload.find('\n');
    if (end == std::string::npos) return;
    rank_.setups.push_back(
        {.backend = event.payload.substr(0, end), .device = event.payload.substr(end + 1)});
  }

  void group(const Event& event) {
    const auto record = event.head<format::GroupRecord>();
    if (!record || event.payload.size() < sizeof *record + record->name_size) return;
    rank_.groups.push_back(
        {.number = record->group,
         .rank = record->rank,
         .size = record->size,
         .name = event.payload.substr(sizeof *record, record->name_size),
         .members = event.numbers<uint32_t>(sizeof *record + record->name_size)});
  }

  void collective(const Event& event, size_t place) {
    const auto call = event.head<format::CollectiveRecord>();
    if (!call) return;
    open_[{call->group, call->sequence}] = rank_.collectives.size();
    CollectiveSeen seen;
    seen.call = *call;
    seen.frames = event.numbers<uint64_t>(sizeof *call);
    seen.event = place;
    rank_.collectives.push_back(std::move(seen));
  }

  void completed(const Event& event, size_t place) {
    const auto end = event.head<format::CompletedRecord>();
    if (!end) return;
    const auto found = open_.find({end->group, end->sequence});
    if (found == open_.end()) return;
    auto& collective = rank_.collectives[found->second];
    collective.completed = true;
    collective.end_event = place;
    collective.failed = end->failed != 0;
  }

  // Told when the collective that moves it has been issued.
  void unit(const Event& event) {
    const auto record = event.head<format::UnitRecord>();
    if (!record || rank_.collectives.empty()) return;
    const auto what = record->event;
    using UnitEvent = format::UnitRecord::Event;
    if (what != UnitEvent::gather_issued && what != UnitEvent::reduce_issued) return;
    rank_.collectives.back().unit = event.payload.substr(sizeof *record);
  }

  void waited(const Event& event, size_t place) {
    const auto wait = event.head<format::WaitedRecord>();
    if (!wait) return;
    const auto found = open_.find({wait->group, wait->sequence});
    if (found == open_.end()) return;
    auto& collective = rank_.collectives[found->second];
    if (wait->done == format::kFutureTaken) {
      collective.may_wait_unseen = true;
      return;
    }
    if (wait->done != 0) {
      if (!collective.waited_until) collective.waited_until = place;
      return;
    }
    if (collective.waited_from) return;
    collective.waited_from = place;
    collective.products_meanwhile = wait->products - collective.call.products;
  }

  void shutdown(const Event& event, size_t place) {
    if (!rank_.shutdown_event) rank_.shutdown_event = place;
    const auto number = event.head<uint64_t>();
    for (auto& group : rank_.groups) {
      if (number && group.number == *number && !group.shut_down) group.shut_down = place;
    }
  }

  void fetch(const Event& event, size_t place) {
    const auto split = event.head<uint64_t>();
    if (!split) return;
    rank_.fetches.push_back({.split = static_cast<Split>(*split),
                             .ids = event.numbers<uint64_t>(sizeof *split),
                             .event = place});
  }

  void forward(const Event& event, size_t place) {
    const auto seen = event.head<format::ForwardRecord>();
    if (!seen) return;
    samples_.forward(rank_.forwards.size(), event.numbers<uint64_t>(sizeof *seen));
    rank_.forwards.push_back({.training = seen->training != 0,
                              .gradients = seen->gradients != 0,
                              .event = place,
                              .generator = generator_});
  }

  void loss(const Event& event, size_t place) {
    const auto numbers = event.numbers<double>();
    if (numbers.size() < 3) return;
    auto& batch = losses_.emplace_back();
    batch.event = place;
    batch.loss_sum = numbers[0];
    batch.loss_count = numbers[1];
    batch.with_gradients = numbers[2] != 0;
    if (!batch.with_gradients) batch.metrics = {numbers.begin() + 3, numbers.end()};
    batch.after_report = std::exchange(reports_, rank_.reports.size()) < rank_.reports.size();
    samples_.find(batch);
  }

  void file(const Event& event, size_t place) {
    const auto record = event.head<format::FileRecord>();
    if (!record || event.payload.size() < sizeof *record + record->path_size) return;
    rank_.file_changes.push_back(
        {.action = record->action,
         .path = event.payload.substr(sizeof *record, record->path_size),
         .new_path = event.payload.substr(sizeof *record + record->path_size),
         .event = place,
         .nanoseconds = event.nanoseconds});
  }

  void reported(const Event& event) {
    const auto numbers = event.numbers<double>();
    if (numbers.empty()) return;
    rank_.reported.push_back(numbers[0]);
    rank_.reports.push_back({.loss = numbers[0], .metrics = {numbers.begin() + 1, numbers.end()}});
  }

  std::vector<TensorSeen> tensors(const Event& event) {
    auto read = read_tensors(event.payload);
    if (!read) rank_.unread = "a list of tensors";
    return std::move(read).value_or(std::vector<TensorSeen>());
  }

  RankSeen& rank_;
  Holding holding_;
  SampleFinder samples_;
  std::vector<BatchSeen> losses_;
  size_t reports_ = 0;  // before the last loss
  StepFinder steps_{rank_, losses_};
  std::optional<size_t> generator_;
  std::map<std::pair<uint32_t, uint64_t>, size_t> open_;
};

}  // namespace

void interpret(RankSeen& rank, Holding holding) {
  Interpreter interpreter(rank, holding);
  for (size_t i = 0; i < rank.log.events.size(); ++i) interpreter.take(rank.log.events[i], i);
  interpreter.end();
}

}  // namespace checker

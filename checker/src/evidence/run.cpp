#include "evidence/run.hpp"

#include <algorithm>
#include <map>
#include <string_view>

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

// A task has a few; more is no split.
constexpr uint64_t kMostSplits = 64;

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
        return completed(event, place);
      case Kind::shutdown:
        return shutdown(event, place);
      case Kind::fetch:
        return fetch(event, place);
      case Kind::taken:
        return taken(event, place);
      case Kind::loss:
        return loss(event);
      case Kind::parameters:
        rank_.parameters = tensors(event);  // the last optimizer made is the one that steps
        return;
      case Kind::learning_rates:
        learning_rates_ = event.numbers<double>();
        return;
      case Kind::values:
        rank_.steps.push_back({.values = in_doubles(event), .learning_rates = learning_rates_});
        return;
      case Kind::gradients:
        return gradients(event, place);
      case Kind::model:
        rank_.model = tensors(event);
        return;
      case Kind::buffers:
        rank_.buffers.push_back({.tensors = tensors(event), .event = place});
        return;
      case Kind::phase:
        if (const auto mark = event.head<format::PhaseRecord>())
          rank_.phases.push_back({.mark = *mark, .event = place});
        return;
      case Kind::forward:
        if (const auto seen = event.head<format::ForwardRecord>())
          rank_.forwards.push_back(
              {.training = seen->training != 0, .gradients = seen->gradients != 0, .event = place});
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

  void waited(const Event& event, size_t place) {
    const auto wait = event.head<format::WaitedRecord>();
    if (!wait || wait->done != 0) return;
    const auto found = open_.find({wait->group, wait->sequence});
    if (found == open_.end()) return;
    auto& collective = rank_.collectives[found->second];
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
    if (!split || *split >= kMostSplits) return;
    BatchSeen batch;
    batch.ids = event.numbers<uint64_t>(sizeof *split);
    batch.event = place;
    const auto kind = static_cast<Split>(*split);
    if (rank_.passes.empty() || rank_.passes.back().split != kind || anew(batch)) {
      fetched_.clear();  // a pass that was broken off
      taken_.clear();
      rank_.passes.push_back({.split = kind, .epoch = 0, .batches = {}});
    }
    rank_.passes.back().batches.push_back(std::move(batch));
    fetched_.emplace_back(rank_.passes.size() - 1, rank_.passes.back().batches.size() - 1);
  }

  // Workers fetch in any order; and what is kept is used again without being fetched again.
  void taken(const Event& event, size_t place) {
    const auto split = event.head<uint64_t>();
    const auto ids = event.numbers<uint64_t>(sizeof(uint64_t));
    auto found = std::ranges::find_if(fetched_, [&](Place at) {
      return static_cast<uint64_t>(rank_.passes[at.first].split) == split && batch(at).ids == ids;
    });
    if (found == fetched_.end()) {
      fetch(event, place);
      if (fetched_.empty()) return;
      found = std::prev(fetched_.end());
    }
    batch(*found).taken = place;
    taken_.push_back(*found);
    fetched_.erase(found);
  }

  // Of a batch: its pass and its number there.
  using Place = std::pair<size_t, size_t>;

  BatchSeen& batch(Place at) { return rank_.passes[at.first].batches[at.second]; }

  // Two ways through one split with nothing between them: a sample comes again.
  bool anew(const BatchSeen& batch) const {
    const auto seen = rank_.passes.back().ids();
    return !batch.ids.empty() && std::ranges::find(seen, batch.ids.front()) != seen.end() &&
           seen.front() == batch.ids.front();
  }

  // Batches may be fetched ahead, or taken ahead: losses come in their order.
  void loss(const Event& event) {
    const auto numbers = event.numbers<double>();
    auto& waiting = taken_.empty() ? fetched_ : taken_;
    if (numbers.size() < 3 || waiting.empty()) return;
    last_loss_ = waiting.front();
    waiting.erase(waiting.begin());
    batch(*last_loss_).loss_sum = numbers[0];
    batch(*last_loss_).loss_count = numbers[1];
    batch(*last_loss_).with_gradients = numbers[2] != 0;
    if (numbers[2] == 0) batch(*last_loss_).metrics = {numbers.begin() + 3, numbers.end()};
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

  // Of all parameters of the optimizer, each in its own type.
  std::vector<double> in_doubles(const Event& event) {
    auto read = read_values(event.payload, rank_.parameters);
    if (!read && !rank_.unread) rank_.unread = "the values of parameters";
    return std::move(read).value_or(std::vector<double>());
  }

  void gradients(const Event& event, size_t place) {
    if (rank_.steps.empty()) return;
    rank_.steps.back().gradients = in_doubles(event);
    rank_.steps.back().event = place;
    if (last_loss_) batch(*last_loss_).step = rank_.steps.size() - 1;
  }

  RankSeen& rank_;
  std::vector<double> learning_rates_;
  std::map<std::pair<uint32_t, uint64_t>, size_t> open_;
  std::vector<Place> fetched_, taken_;  // those that wait for being taken, and for their loss
  std::optional<Place> last_loss_;
};

}  // namespace

void interpret(RankSeen& rank) {
  Interpreter interpreter(rank);
  for (size_t i = 0; i < rank.log.events.size(); ++i) interpreter.take(rank.log.events[i], i);
  put_in_order(rank.passes);
}

}  // namespace checker

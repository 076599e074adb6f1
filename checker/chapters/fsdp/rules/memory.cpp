// What a rank's tensors take, counted by their bytes: between steps its share of parameters,
// gradients and the optimizer's state; while it computes, a few units of the model besides. Both
// are held against what one process needs for the whole model.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "judge/rules/rules.hpp"

namespace checker::rules {

void memory(const RunContext& context, Symptoms& symptoms);

namespace {

using instrumentation::Moment;

// Shares are rounded up to whole rows. A batch and what a task keeps for itself come on top. So may
// one copy that is cut as well: a mean of the parameters over the steps, or the best ones so far.
constexpr double kRounding = 1.15, kBeside = 0.05, kCutCopies = 1;
// What is there after so many steps in a row is kept. Gloo's threads may hold what has passed for a
// moment longer, but not for that long.
constexpr size_t kInARow = 8;
// What belongs to a unit that computes, one that is gathered ahead, and one more. On the way, what
// travels lies beside where it goes, and Gloo's threads hold it for a moment longer: with the
// course's own units 5 to 7, with all gathered at once 16 of 8.
constexpr double kUnits = 3.25, kUnitsOnTheWay = 9, kRestOnTheWay = 2;

class Memory {
 public:
  Memory(const RunContext& context, const SerialMemory& serial, Symptoms& symptoms)
      : context_(context), serial_(serial), symptoms_(symptoms) {}

  void between_steps() {
    const double parameters = static_cast<double>(serial_.parameters);
    const double share = (2 * parameters + static_cast<double>(serial_.state)) /
                         static_cast<double>(context_.world());
    const double limit = kRounding * share + kBeside * parameters +
                         kCutCopies * parameters / static_cast<double>(context_.world());
    for (size_t rank = 0; rank < context_.world(); ++rank) {
      const double kept = kept_by(context_.run().ranks[rank]);
      if (kept <= limit) continue;
      add("memory_not_shared",
          {{"rank", rank}, {"kept", kilobytes(kept)}, {"share", kilobytes(share)}});
      return;
    }
  }

  void while_computing() {
    if (!serial_.block) return;
    const double block = static_cast<double>(*serial_.block);
    const double rest = static_cast<double>(serial_.rest);
    const double after = static_cast<double>(serial_.forward) + rest + kUnits * block;
    const double on_the_way =
        static_cast<double>(serial_.forward_most) + kRestOnTheWay * rest + kUnitsOnTheWay * block;
    for (size_t rank = 0; rank < context_.world(); ++rank) {
      const auto taken = taken_in_forward(context_.run().ranks[rank]);
      if (taken.after <= after && taken.on_the_way <= on_the_way) continue;
      const bool at_the_end = taken.after > after;
      add("whole_model_at_once", {{"rank", rank},
                                  {"took", kilobytes(at_the_end ? taken.after : taken.on_the_way)},
                                  {"limit", kilobytes(at_the_end ? after : on_the_way)},
                                  {"block", kilobytes(block)}});
      if (has_one_unit()) symptoms_.back().kind = FindingKind::not_started;
      return;
    }
  }

 private:
  struct Forward {
    double after = 0, on_the_way = 0;  // more than before it
  };

  // The most that stays from step to step, wherever in the run: a copy may be made late.
  static double kept_by(const RankSeen& rank) {
    std::optional<double> before;
    std::vector<double> after_steps;
    for (const auto& seen : rank.memory) {
      const auto live = static_cast<double>(seen.bytes.live);
      if (seen.bytes.moment == Moment::model_begins && !before) before = live;
      if (seen.bytes.moment == Moment::step_ends && before) after_steps.push_back(live - *before);
    }
    const auto row = static_cast<std::ptrdiff_t>(std::min(kInARow, after_steps.size()));
    double kept = 0;
    for (auto first = after_steps.begin(); row > 0 && after_steps.end() - first >= row; ++first) {
      kept = std::max(kept, *std::min_element(first, first + row));
    }
    return kept;
  }

  // Between these places in the log. There parameters may be whole.
  static bool evaluates(const RankSeen& rank, size_t from, size_t until) {
    return std::ranges::any_of(rank.forwards, [&](const ForwardSeen& forward) {
      return !forward.gradients && forward.event > from && forward.event < until;
    });
  }

  // What a forward pass takes beside what was there at the least since the step before; of all
  // passes the least, because of Gloo's threads.
  static Forward taken_in_forward(const RankSeen& rank) {
    std::optional<Forward> taken;
    const MemorySeen* before = nullptr;
    for (const auto& seen : rank.memory) {
      if (seen.bytes.moment == Moment::loss && before != nullptr &&
          before->bytes.moment == Moment::step_ends &&
          !evaluates(rank, before->event, seen.event)) {
        const auto least = static_cast<double>(seen.bytes.least);
        const Forward own{.after = static_cast<double>(seen.bytes.live) - least,
                          .on_the_way = static_cast<double>(seen.bytes.most) - least};
        if (!taken) taken = own;
        taken->after = std::min(taken->after, own.after);
        taken->on_the_way = std::min(taken->on_the_way, own.on_the_way);
      }
      before = &seen;
    }
    return taken.value_or(Forward());
  }

  // As before the TODO: what is gathered belongs to no unit that was named.
  bool has_one_unit() const {
    bool any = false;
    for (const auto& rank : context_.run().ranks) {
      for (const auto& seen : rank.collectives) {
        any = any || !seen.unit.empty();
        if (!seen.unit.empty() && !seen.unit.starts_with('(')) return false;
      }
    }
    return any;
  }

  void add(std::string id, checker::Values line) {
    symptoms_.push_back({.id = std::move(id),
                         .values = context_.values(),
                         .evidence = {{"bytes", std::move(line)}}});
  }

  const RunContext& context_;
  const SerialMemory& serial_;
  Symptoms& symptoms_;
};

}  // namespace

void memory(const RunContext& context, Symptoms& symptoms) {
  if (!context.expects(feature::fsdp) || context.world() == 1 || !context.truth.memory) return;
  // Where ranks hold the whole model, another rule says so.
  const auto& ranks = context.run().ranks;
  if (!std::ranges::all_of(ranks, &RankSeen::in_pieces)) return;
  Memory memory(context, *context.truth.memory, symptoms);
  memory.between_steps();
  if (context.expects(feature::units)) memory.while_computing();
}

}  // namespace checker::rules

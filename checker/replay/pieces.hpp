#pragma once
/// Where in the whole model lies what a rank trains, be it all of it or pieces: shards, slices,
/// flat parts of several parameters. First values tell, so a program need not say it.
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "deviation.hpp"
#include "evidence/run.hpp"

namespace replay {

class Pieces {
 public:
  /// ranks: those that hold pieces give their steps away. They get steps of the whole model
  /// instead, put together from what all ranks hold, and the model's parameters.
  /// start: what the ranks begin with, all of the model's parameters, as computed; empty: what
  /// make_model gave to rank 0.
  explicit Pieces(std::vector<checker::RankSeen>& ranks, const Flat& start = {});

  /// Whether some rank holds pieces.
  bool any() const { return !model_.empty(); }
  /// Whether the rank holds pieces.
  bool has(size_t rank) const { return held_[rank].has_value(); }
  /// Whether it is known of all pieces where they lie.
  bool all_known() const;
  /// What it recorded, where it holds pieces.
  const std::vector<checker::StepSeen>& steps(size_t rank) const { return held_[rank]->steps; }
  const std::vector<checker::TensorSeen>& parameters(size_t rank) const {
    return held_[rank]->parameters;
  }

  /// What the rank holds of this, which is of the whole model. A rank that holds all of it, but
  /// values that the model does not have, holds them in the model's order.
  Flat part(size_t rank, Flat whole) const;
  /// parts: of each rank that holds pieces; empty for others. base: of the whole model, for what no
  /// rank holds. Where several hold the same, the lowest rank's.
  Flat whole(const std::vector<const Flat*>& parts, Flat base) const;

  /// Step t of the whole model, with its gradients. ranks: those that were given.
  checker::StepSeen whole_step(const std::vector<checker::RankSeen>& ranks, size_t t) const;

  /// elements: of the model; nowhere: of these, those that no rank holds, and the names of
  /// parameters with such; once, everywhere: those that one rank, or every rank holds; unknown: by
  /// rank, elements that the model does not have. Zeros that fill up a piece are none.
  nlohmann::json cover() const;

 private:
  struct Held {
    std::vector<checker::StepSeen> steps;
    std::vector<checker::TensorSeen> parameters;
    std::vector<std::optional<size_t>> places;  // in the whole model
    size_t unknown = 0;
  };

  void find_whole_models(const std::vector<checker::RankSeen>& ranks, const Flat& start);
  void find_places(Held& held, const Flat& model, double apart) const;
  void give_whole_steps(std::vector<checker::RankSeen>& ranks, const Flat& model) const;

  std::vector<std::optional<Held>> held_;  // by rank
  // By rank, of those that hold all: where in the model each value lies; nothing if it has others.
  std::vector<std::optional<std::vector<size_t>>> order_;
  std::vector<checker::TensorSeen> model_;  // the parameters, without values
};

}  // namespace replay

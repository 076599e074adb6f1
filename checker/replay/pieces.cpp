#include "pieces.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fingerprints.hpp"

namespace replay {

using checker::RankSeen;
using checker::StepSeen;
using checker::TensorSeen;

namespace {

Flat at_places(const std::vector<size_t>& places, const Flat& whole) {
  Flat values;
  values.reserve(places.size());
  for (const auto place : places) values.push_back(place < whole.size() ? whole[place] : 0);
  return values;
}

}  // namespace

Pieces::Pieces(std::vector<RankSeen>& ranks, const Flat& start)
    : held_(ranks.size()), order_(ranks.size()) {
  find_whole_models(ranks, start);
  if (std::ranges::none_of(ranks, &RankSeen::in_pieces)) return;
  // All ranks begin with rank 0's model.
  Flat model;
  for (auto tensor : ranks[0].model) {
    if (tensor.buffer) continue;
    model.insert(model.end(), tensor.values.begin(), tensor.values.end());
    tensor.values.clear();
    model_.push_back(std::move(tensor));
  }
  if (!start.empty()) model = start;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (!ranks[rank].in_pieces) continue;
    auto& held = held_[rank].emplace();
    held.steps = std::move(ranks[rank].steps);
    held.parameters = std::exchange(ranks[rank].parameters, model_);
    find_places(held, model, start.empty() ? 0 : kComputed);
  }
  give_whole_steps(ranks, model);
}

void Pieces::find_whole_models(const std::vector<RankSeen>& ranks, const Flat& start) {
  if (ranks.empty()) return;
  const auto model =
      start.empty() ? in_order(ranks[0].model, ranks[0].parameters) : std::optional(start);
  if (!model) return;
  const Fingerprints fingerprints(*model, start.empty() ? 0 : kComputed);
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].in_pieces || ranks[rank].steps.empty()) continue;
    order_[rank] = fingerprints.places(ranks[rank].steps[0].values);
  }
}

void Pieces::find_places(Held& held, const Flat& model, double apart) const {
  if (held.steps.empty()) return;
  const Fingerprints fingerprints(model, apart);
  for (const double value : held.steps[0].values) {
    const auto* found = fingerprints.nearest(value);
    held.places.push_back(found ? std::optional(found->front()) : std::nullopt);
    if (!found && value != 0) ++held.unknown;
  }
}

void Pieces::give_whole_steps(std::vector<RankSeen>& ranks, const Flat& model) const {
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (!has(rank)) continue;
    for (size_t t = 0; t < steps(rank).size(); ++t) {
      std::vector<const Flat*> parts(ranks.size());
      for (size_t other = 0; other < ranks.size(); ++other) {
        if (has(other) && t < steps(other).size()) parts[other] = &steps(other)[t].values;
      }
      const auto& own = steps(rank)[t];
      ranks[rank].steps.push_back({.values = whole(parts, model),
                                   .gradients = {},
                                   .learning_rates = own.learning_rates,
                                   .stepped = std::vector<bool>(model_.size(), true),
                                   .event = own.event});
    }
  }
}

bool Pieces::all_known() const {
  return std::ranges::none_of(held_, [](const auto& held) { return held && held->unknown > 0; });
}

Flat Pieces::part(size_t rank, Flat whole) const {
  if (!has(rank)) return order_[rank] ? at_places(*order_[rank], whole) : whole;
  Flat part;
  part.reserve(held_[rank]->places.size());
  for (const auto place : held_[rank]->places) {
    part.push_back(place && *place < whole.size() ? whole[*place] : 0);
  }
  return part;
}

Flat Pieces::whole(const std::vector<const Flat*>& parts, Flat base) const {
  for (size_t rank = parts.size(); rank-- > 0;) {
    if (!parts[rank] || !has(rank)) continue;
    const auto& places = held_[rank]->places;
    for (size_t i = 0; i < std::min(places.size(), parts[rank]->size()); ++i) {
      if (places[i]) base[*places[i]] = (*parts[rank])[i];
    }
  }
  return base;
}

StepSeen Pieces::whole_step(const std::vector<RankSeen>& ranks, size_t t) const {
  auto step = ranks.at(0).steps.at(t);
  if (!any()) return step;
  std::vector<const Flat*> parts(held_.size());
  for (size_t rank = 0; rank < held_.size(); ++rank) {
    if (has(rank) && t < steps(rank).size()) parts[rank] = &steps(rank)[t].gradients;
  }
  step.gradients = whole(parts, Flat(step.values.size(), 0.0));
  return step;
}

nlohmann::json Pieces::cover() const {
  size_t elements = 0, once = 0, everywhere = 0, nowhere = 0;
  for (const auto& parameter : model_) elements += parameter.elements;
  std::vector<size_t> holders(elements, 0);
  auto unknown = nlohmann::json::array();
  for (const auto& held : held_) {
    unknown.push_back(held ? held->unknown : 0);
    if (!held) {
      for (auto& count : holders) ++count;  // it holds the whole model
      continue;
    }
    for (const auto place : held->places) {
      if (place) ++holders[*place];
    }
  }
  std::vector<std::string> names;
  size_t from = 0;
  for (const auto& parameter : model_) {
    bool lacks = false;
    for (size_t i = from; i < from + parameter.elements; ++i) {
      once += holders[i] == 1 ? 1 : 0;
      everywhere += holders[i] >= held_.size() ? 1 : 0;
      nowhere += holders[i] == 0 ? 1 : 0;
      lacks = lacks || holders[i] == 0;
    }
    if (lacks) names.push_back(parameter.name);
    from += parameter.elements;
  }
  return {{"elements", elements}, {"once", once},   {"everywhere", everywhere},
          {"nowhere", nowhere},   {"names", names}, {"unknown", unknown}};
}

}  // namespace replay

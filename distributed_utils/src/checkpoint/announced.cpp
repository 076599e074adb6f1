#include "checkpoint/announced.hpp"

#include <nlohmann/json.hpp>

#include "checkpoint/pieces.hpp"

namespace distributed_utils::detail {
namespace {

std::vector<std::string> described(const std::vector<Placement>& pieces) {
  std::vector<std::string> result;
  for (const auto& piece : pieces) {
    if (!piece.replicated) result.push_back(describe(piece));
  }
  return result;
}

}  // namespace

std::string announce(int64_t step, const std::vector<Placement>& model,
                     const std::vector<Placement>& optimizer) {
  const nlohmann::json text = {
      {"step", step}, {"model", described(model)}, {"optimizer", described(optimizer)}};
  return text.dump();
}

Announced read_announced(const std::vector<std::string>& texts) {
  Announced result;
  for (const auto& text : texts) {
    const auto from = nlohmann::json::parse(text);
    result.steps.push_back(from.at("step"));
    result.model.push_back(from.at("model"));
    result.optimizer.push_back(from.at("optimizer"));
  }
  return result;
}

}  // namespace distributed_utils::detail

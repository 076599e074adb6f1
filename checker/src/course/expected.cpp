#include "course/expected.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

size_t read_count(const fs::path& file, const Mapping& mapping, const char* key) try {
  return mapping.has(key) ? mapping.node(key).as<size_t>() : 0;
} catch (const YAML::Exception&) {
  fail(file, mapping.node(key).Mark(), std::string(key) + " must be a whole number.");
}

// {mean: mean_of_all}, or {sum: {is: sum_of_all, on: rank_0}}
void read_results(const fs::path& file, const Mapping& mapping, Step& step) {
  step.numbers = read_count(file, mapping, "numbers");
  step.numbers_a_rank = read_count(file, mapping, "numbers_a_rank");
  step.repair = mapping.has("repair") && mapping.node("repair").as<bool>();
  if (mapping.has("without")) step.without = mapping.list<std::string>("without");
  for (const auto& entry : mapping.node("results")) {
    ExpectedResult result{.name = entry.first.as<std::string>(), .is = ""};
    if (entry.second.IsScalar()) {
      result.is = entry.second.Scalar();
    } else {
      const Mapping more(file, entry.second, {"is", "on"});
      result.is = more.line("is");
      result.on_rank_0 = more.line("on") == "rank_0";
      if (!result.on_rank_0) fail(file, entry.second.Mark(), "on must be rank_0.");
    }
    step.results.push_back(std::move(result));
  }
}

}  // namespace

void read_expected(const fs::path& file, const Mapping& mapping, Step& step) {
  if (mapping.has("arguments")) step.arguments = mapping.list<std::string>("arguments");
  if (mapping.has("results")) return read_results(file, mapping, step);
  try {
    step.expected = mapping.node("expected").as<std::map<size_t, std::vector<std::string>>>();
  } catch (const YAML::Exception&) {
    fail(file, mapping.node("expected").Mark(),
         "expected must name, for each world size, what each rank prints.");
  }
  for (const auto& world : step.conditions.front().worlds) {
    const auto found = step.expected.find(world.size());
    if (found != step.expected.end() && found->second.size() == world.size()) continue;
    fail(file, mapping.node("expected").Mark(),
         "what " + std::to_string(world.size()) + " ranks print is missing, a text for each.");
  }
}

}  // namespace checker

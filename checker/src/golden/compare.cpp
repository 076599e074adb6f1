#include "golden/compare.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>

#include "support/text.hpp"

namespace checker::golden {

namespace {

// A trainer reports two losses an epoch, and one more at its end.
std::string loss_name(size_t number, size_t count) {
  if (number + 1 == count) return "test loss";
  return (number % 2 == 0 ? "training loss of epoch " : "validation loss of epoch ") +
         std::to_string(number / 2 + 1);
}

double relative(double wanted, double found) {
  if (wanted == found) return 0;
  const double difference = std::abs(found - wanted) / std::abs(wanted);
  return std::isnan(difference) ? INFINITY : difference;
}

std::string in_words(const std::string& name, double wanted, double found) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), " (%.1e of it)", relative(wanted, found));
  return name + " " + shortest(found) + ", not " + shortest(wanted) + text.data();
}

// What differs between two ranks' losses by more than the tolerance.
std::vector<std::string> differing_losses(const std::vector<double>& wanted,
                                          const std::vector<double>& found, double tolerance,
                                          double& largest) {
  if (wanted.size() != found.size()) {
    return {"it reports " + std::to_string(found.size()) + " losses, not " +
            std::to_string(wanted.size())};
  }
  std::vector<std::string> words;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double difference = relative(wanted[i], found[i]);
    largest = std::max(largest, difference);
    if (difference > tolerance) {
      words.push_back(in_words(loss_name(i, wanted.size()), wanted[i], found[i]));
    }
  }
  return words;
}

using Look = std::function<std::vector<std::string>(const Result& wanted, const Result& found)>;

// Looks at each rank of both; one that only one side has is wrong.
std::vector<std::string> look_at_all(const Results& wanted, const Results& found,
                                     const Look& look) {
  std::vector<std::string> wrong;
  for (const auto& [name, result] : wanted) {
    const auto other = found.find(name);
    if (other == found.end()) {
      wrong.push_back(name + ": this run no longer exists");
    } else if (const auto words = look(result, other->second); !words.empty()) {
      wrong.push_back(name + ": " + join(words, "; "));
    }
  }
  for (const auto& [name, result] : found) {
    if (!wanted.contains(name)) wrong.push_back(name + ": this run is new");
  }
  return wrong;
}

}  // namespace

Comparison compare_bits(const Results& wanted, const Results& found) {
  Comparison comparison;
  comparison.wrong = look_at_all(wanted, found, [&](const Result& one, const Result& other) {
    auto words = differing_losses(one.losses, other.losses, 0, comparison.largest);
    if (one.batches != other.batches) words.emplace_back("losses of batches differ");
    if (one.parameters != other.parameters) words.emplace_back("final parameters differ");
    return words;
  });
  return comparison;
}

Comparison compare_losses(const Results& wanted, const Results& found) {
  Comparison comparison;
  comparison.wrong = look_at_all(wanted, found, [&](const Result& one, const Result& other) {
    return differing_losses(one.losses, other.losses, kLossTolerance, comparison.largest);
  });
  return comparison;
}

const Entry* most_like(std::span<const Entry> entries, const Key& key) {
  const auto differing = [&](const Entry& entry) {
    return std::ranges::count_if(
        key_parts(), [&](const KeyPart& part) { return entry.key.*part.value != key.*part.value; });
  };
  const auto nearest = std::ranges::min_element(entries, {}, differing);
  return nearest == entries.end() ? nullptr : &*nearest;
}

}  // namespace checker::golden

#pragma once
/// Judges the whole catalogue: is the judge right?
#include <functional>
#include <string>
#include <vector>

#include "judge/check.hpp"
#include "ladder/catalogue.hpp"

namespace checker {

enum class Wanted {
  rejected,
  accepted,
  open,  ///< known as what was given; and rejected by what it does, if that were not known
};

struct Sample {
  int todo = 0;  ///< 0: of no one in particular
  std::string name;
  std::string text;
  Wanted wanted = Wanted::rejected;
  const Step* step = nullptr;
  bool quick = false;
  bool job = false;     ///< a job script; else a trainer
  std::string words{};  ///< the belief behind a wrong edit; why a variant is right
};

struct SampleResult {
  Sample sample;
  bool built = false;
  bool as_wanted = false;       ///< rejected, or accepted
  bool blamed_rightly = false;  ///< of a rejected one: the TODO named first is the sample's own
  Report report{};
  std::string problem{};   ///< what is not as wanted, in a line; else empty
  std::string findings{};  ///< "TODO 8 gradients_summed; TODO 9 same_order_again"
};

/// Every step as given (rejected, by what it does), every solution, every wrong edit and variant.
std::vector<Sample> catalogue_samples(const Ladder& ladder,
                                      const std::vector<CatalogueEntry>& catalogue);

/// Builds and judges them; told of each result as it comes. Of the options only device and build
/// count.
std::vector<SampleResult> judge_samples(const Project& project, const Ladder& ladder,
                                        const std::vector<Sample>& samples, const CheckOptions& how,
                                        const std::function<void(const SampleResult&)>& on_result);

}  // namespace checker

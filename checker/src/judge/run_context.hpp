#pragma once
/// All that is known about one run, for the rules to look at.
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "course/course.hpp"
#include "judge/experiment.hpp"
#include "judge/oracle.hpp"
#include "judge/symptom.hpp"
#include "judge/verdict.hpp"
#include "plan/plan.hpp"

namespace checker {

/// Turns a collective's return addresses into "steps/…/train.cpp:48", or an empty text.
using Locate = std::function<std::string(const RankSeen&, const CollectiveSeen&)>;

/// The features that rules ask for: what a TODO switches on, rather than its number.
namespace feature {
inline constexpr std::string_view setup = "SETUP", samplers = "SAMPLER", ddp = "DDP",
                                  set_epoch = "SET_EPOCH", all_reduce = "ALL_REDUCE",
                                  print0 = "PRINT0", save0 = "SAVE0", destroy = "DESTROY",
                                  target_mean = "TARGET_MEAN", scaled_rate = "SCALED_RATE",
                                  broadcast = "BROADCAST", fsdp = "FSDP", units = "UNITS";
}  // namespace feature

struct RunContext {
  const RecordedRun& recorded;
  const ExpectedWorld& truth;
  const Plan& plan;
  const Course& course;
  const Step& step;
  std::set<std::string> features;  ///< what a right program of this step has
  Locate locate;

  const Run& run() const { return recorded.run; }
  size_t world() const { return recorded.run.world; }
  /// Whether a right program of this step has a feature. Throws Error if no TODO switches it on.
  bool expects(std::string_view name) const;
  uint64_t size_of(Split split) const { return plan.samples.at(static_cast<size_t>(split)).second; }
  /// What results may deviate by: the plan's tolerance in fp64, more in narrower types, by the
  /// narrowest parameter of any rank.
  double tolerance() const;
  double gradient_tolerance() const;
  double loss_tolerance() const;
  /// The value of an option that the run was started with, "--seed"; empty: it got none.
  std::string started_with(std::string_view option) const;
  /// Whether every rank ended by itself, successfully.
  bool ended_well() const;
  /// Whether these are the ranks with the local rank 0 on all nodes but the first.
  bool are_first_on_other_nodes(const std::vector<size_t>& ranks) const;
  /// "world": the world size, which most lines of evidence name.
  Values values() const { return {{"world", world()}}; }
};

using Findings = std::vector<Finding>;

std::string name_of(Split split);
/// "3, 7, 12, 20 ..."
std::string first_few(const std::vector<uint64_t>& ids, size_t count = 8);

}  // namespace checker

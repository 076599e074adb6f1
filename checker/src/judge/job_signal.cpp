#include "judge/job_signal.hpp"

#include <algorithm>
#include <csignal>
#include <set>

#include "judge/job_processes.hpp"

namespace checker {

namespace {

// On each node, how many of the ranks were told.
std::vector<EvidenceLine> told_by_node(const JobSeen& job) {
  std::vector<EvidenceLine> evidence;
  std::set<std::string> hosts;
  for (const auto& rank : job.trainers) hosts.insert(rank.host);
  for (const auto& host : hosts) {
    const auto of_host = [&](const StartSeen& rank) { return rank.host == host; };
    evidence.push_back({"ranks_told",
                        {{"host", host},
                         {"told", std::ranges::count_if(job.trainers,
                                                        [&](const StartSeen& rank) {
                                                          return of_host(rank) && rank.told;
                                                        })},
                         {"ranks", std::ranges::count_if(job.trainers, of_host)}}});
  }
  return evidence;
}

Symptom launcher_lost(const JobSeen& job) {
  Symptom symptom{.id = "signal_ends_the_launcher"};
  std::set<std::string> known;
  for (const auto& rank : job.trainers) {
    if (rank.lost.empty()) continue;
    symptom.variant = rank.lost == "torchrun" ? "" : "another";
    symptom.values["program"] = rank.lost;
    if (!known.insert(rank.host).second) continue;
    symptom.evidence.push_back(
        {"ended_by_signal",
         {{"host", rank.host},
          {"process", rank.lost},
          {"ranks", std::ranges::count_if(job.trainers, [&](const StartSeen& other) {
             return other.host == rank.host && !other.lost.empty();
           })}}});
  }
  return symptom;
}

Symptom script_over(const JobSeen& job) {
  const bool by_signal = job.exit_code == "0:" + std::to_string(SIGUSR1);
  auto evidence = told_by_node(job);
  std::ranges::move(last_words_of(job), std::back_inserter(evidence));
  return {.id = by_signal ? "signal_ends_the_script" : "script_ends_before_its_ranks",
          .evidence = std::move(evidence)};
}

}  // namespace

std::optional<Symptom> judge_signal(const JobContext& context) {
  const auto& job = context.other;
  const auto is = [&](const char* id) { return Symptom{.id = id, .evidence = last_words_of(job)}; };
  switch (job.after_signal) {
    case AfterSignal::untried:
    case AfterSignal::not_ready:
      return std::nullopt;
    case AfterSignal::launcher_lost:
      return launcher_lost(job);
    case AfterSignal::script_over:
      return script_over(job);
    case AfterSignal::ranks_not_told:
      return Symptom{.id = "signal_not_passed_on",
                     .evidence = told_by_node(job),
                     .variant = std::ranges::any_of(job.trainers, &StartSeen::told) ? "some" : ""};
    case AfterSignal::goes_on:
      return is("job_goes_on_without_its_ranks");
    case AfterSignal::ended:
      return is("not_queued_again");
    case AfterSignal::held:
      return is("queued_again_but_held");
    case AfterSignal::queued_again:
      break;
  }
  if (job.restarts > 1) return is("queued_again_after_failing");
  return std::nullopt;
}

}  // namespace checker

#include "jobs/record.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "support/text.hpp"

namespace checker {

namespace {

// "   JobState=RUNNING Reason=None Dependency=(null)": the value of one key, up to one of `ends`.
std::string field(std::string_view text, const std::string& key, std::string_view ends) {
  auto at = text.find(" " + key + "=");
  if (at == text.npos) return "";
  at += key.size() + 2;
  const std::string value(text.substr(at, text.find_first_of(ends, at) - at));
  return value == "(null)" || value == "None" ? "" : value;
}

using Meaning = std::pair<std::string_view, std::string_view>;

constexpr std::array<Meaning, 16> meanings{{
    {"Resources", "its nodes are busy"},
    {"Priority", "other jobs come first"},
    {"BeginTime", "a requeued job waits a while"},
    {"ReqNodeNotAvail", "its nodes are down or reserved"},
    {"PartitionConfig", "the partition lacks what it asks for, so it never starts"},
    {"PartitionNodeLimit", "it asks for more nodes than the partition allows"},
    {"PartitionTimeLimit", "it asks for more time than the partition allows"},
    {"AssocGrpGRES", "your account has reached its limit of GPUs"},
    {"QOSMaxGRESPerUser", "you have reached your limit of GPUs"},
    {"AssocGrpBillingMinutes", "your account has used up its time"},
    {"Dependency", "it waits for another job"},
    {"JobHeldUser", "it is held: scontrol release starts it"},
    {"JobHeldAdmin", "the administrators hold it"},
    {"TIMEOUT", "it reached its time limit"},
    {"OUT_OF_MEMORY", "it took more memory than it asked for"},
    {"NODE_FAIL", "a node failed"},
}};

}  // namespace

bool JobRecord::is_over() const {
  constexpr std::array going{"",           "PENDING",   "RUNNING",  "CONFIGURING",
                             "COMPLETING", "SUSPENDED", "REQUEUED", "STAGE_OUT"};
  return std::ranges::find(going, state) == going.end();
}

JobRecord parse_job_record(std::string_view text) {
  const auto word = [&](const char* key) { return field(text, key, " \n"); };
  const auto asked = word("NumNodes");  // "2", or "2-4"
  return {.state = word("JobState"),
          .reason = word("Reason"),
          .nodes = word("NodeList"),
          .nodes_asked = whole_number(asked.substr(0, asked.find('-')), 0),
          .exit_code = word("ExitCode"),
          .restarts = whole_number(word("Restarts"), 0),
          .output = field(text, "StdOut", "\n")};
}

std::string_view meaning_of(std::string_view word) {
  const auto found = std::ranges::find(meanings, word, &Meaning::first);
  return found == meanings.end() ? "" : found->second;
}

}  // namespace checker

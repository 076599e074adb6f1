#include "evidence/files.hpp"
#include "judge/departure.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

namespace {

using instrumentation::FileAction;

std::string name_of(FileAction action) {
  switch (action) {
    case FileAction::write:
      return "write";
    case FileAction::move:
      return "rename";
    case FileAction::remove:
      return "remove";
  }
  return "change";
}

std::string name_in_folder(const RunContext& context, const std::filesystem::path& file) {
  return file.lexically_relative(context.run().ranks[0].folder).string();
}

// What the program itself does no more of, once it is on its way out.
bool ends_a_program(Kind kind) {
  return kind == Kind::shutdown || kind == Kind::exit || kind == Kind::phase;
}

// The file that a rank was about to change when it failed.
const FileChange* last_deed(const RankSeen& rank) {
  if (rank.file_changes.empty()) return nullptr;
  const auto& events = rank.log.events;
  auto last = events.size();
  while (last > 0 && ends_a_program(events[last - 1].kind)) --last;
  const auto& change = rank.file_changes.back();
  return change.event + 1 == last ? &change : nullptr;
}

std::optional<Symptom> foreign_change(const RunContext& context) {
  const auto found = first_foreign_change(context.run());
  if (!found) return std::nullopt;
  const bool moved = found->change.action == FileAction::move;
  Symptom symptom{.id = "other_ranks_change_files",
                  .values = context.values(),
                  .variant = moved ? "moved" : ""};
  symptom.values["rank"] = found->rank;
  symptom.evidence.push_back({moved ? "moved" : "removed",
                              {{"rank", found->rank},
                               {"file", name_in_folder(context, found->change.path)},
                               {"to", name_in_folder(context, found->change.new_path)}}});
  return symptom;
}

std::optional<Symptom> collision(const RunContext& context) {
  for (size_t rank = 0; rank < context.world(); ++rank) {
    const auto& seen = context.run().ranks[rank];
    const auto& exit = seen.result.exit;
    // A signal has other reasons than a file that is gone.
    if (exit.success() || exit.signal != 0 || seen.result.ended_by_us || is_victim(seen)) continue;
    const auto* change = last_deed(seen);
    if (!change || !changed_by_others(context.run(), rank, *change)) continue;
    Symptom symptom{.id = "ranks_collide_at_a_file", .values = context.values()};
    symptom.values["rank"] = rank;
    symptom.evidence.push_back({"last",
                                {{"rank", rank},
                                 {"do", name_of(change->action)},
                                 {"file", name_in_folder(context, change->path)}}});
    if (const auto words = last_words(seen); !words.empty())
      symptom.evidence.push_back({"said", {{"rank", rank}, {"words", words}}});
    return symptom;
  }
  return std::nullopt;
}

}  // namespace

void files(const RunContext& context, Symptoms& symptoms) {
  if (!context.expects(feature::save0)) return;
  auto symptom = foreign_change(context);
  if (!symptom) symptom = collision(context);
  if (symptom) symptoms.push_back(std::move(*symptom));
}

}  // namespace checker::rules

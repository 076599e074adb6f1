#include "edited.hpp"

#include <algorithm>

#include "judge/workshop.hpp"
#include "ladder/render.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {

namespace {

WorkPiece piece_of(const Ladder& ladder, const EditedSolution& edited) {
  auto text = render(ladder, ladder.trainer, ladder.step(edited.step), Rendering::solution);
  const auto place = text.find(edited.after);
  if (place == text.npos) throw Error("not in the solution: " + edited.after);
  text.insert(place + edited.after.size(), edited.code + "\n");
  text.insert(0,
              "#include <fcntl.h>\n#include <unistd.h>\n#include <csignal>\n#include <cstdio>\n"
              "#include <fstream>\n");
  return {edited.name, text, {}, {}};
}

}  // namespace

Report judge_edited(const std::vector<EditedSolution>& all, const std::string& name,
                    const std::vector<int>& worlds) {
  const auto project = find_project();
  const auto ladder = load_ladder(project.ladder());
  std::vector<WorkPiece> pieces;
  for (const auto& edited : all) pieces.push_back(piece_of(ladder, edited));
  Workshop(project, /*builds=*/true).build(pieces);
  const auto edited = std::ranges::find(all, name, &EditedSolution::name);
  const auto& piece = pieces.at(static_cast<size_t>(edited - all.begin()));
  if (piece.program.empty()) throw Error(join(piece.output, "\n"));
  CheckOptions options;
  options.program = piece.program.string();
  options.build = false;
  options.worlds = worlds;
  return check_step(project, ladder, ladder.step(edited->step), options);
}

}  // namespace checker

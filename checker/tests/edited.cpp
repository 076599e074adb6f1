#include "edited.hpp"

#include "judge/workshop.hpp"
#include "ladder/render.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {

Report judge_edited(const EditedSolution& edited, const std::vector<int>& worlds) {
  const auto project = find_project();
  const auto ladder = load_ladder(project.ladder());
  const auto& step = ladder.step(edited.step);
  auto text = render(ladder, ladder.trainer, step, Rendering::solution);
  const auto place = text.find(edited.after);
  if (place == text.npos) throw Error("not in the solution: " + edited.after);
  text.insert(place + edited.after.size(), edited.code + "\n");
  text.insert(0,
              "#include <csignal>\n#include <cstdio>\n#include <fcntl.h>\n#include "
              "<fstream>\n#include <unistd.h>\n");
  WorkPiece piece{edited.name, text, {}, {}};
  Workshop(project, /*builds=*/true).build({&piece, 1});
  if (piece.program.empty()) throw Error(join(piece.output, "\n"));

  CheckOptions options;
  options.program = piece.program.string();
  options.build = false;
  options.worlds = worlds;
  return check_step(project, ladder, step, options);
}

}  // namespace checker

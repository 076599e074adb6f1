#include "edited.hpp"

#include <algorithm>

#include "course/render.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {

namespace {

CachedProgram piece_of(const Course& course, const EditedSolution& edited) {
  const auto& step = course.step(edited.step);
  const auto& file = course.program_of(step);
  auto text = render(course, file, step, Rendering::solution);
  const auto place = text.find(edited.after);
  if (place == text.npos) throw Error("not in the solution: " + edited.after);
  text.insert(place + edited.after.size(), edited.code + "\n");
  text.insert(0,
              "#include <fcntl.h>\n#include <unistd.h>\n#include <csignal>\n#include <cstdio>\n"
              "#include <fstream>\n");
  return {edited.name, {{file.name, text}}};
}

std::vector<CachedProgram> built(const Project& project, const Course& course,
                                 const std::vector<EditedSolution>& all) {
  std::vector<CachedProgram> pieces;
  for (const auto& edited : all) pieces.push_back(piece_of(course, edited));
  BuildCache(project, /*builds=*/true).build(pieces);
  return pieces;
}

}  // namespace

EditedSolutions::EditedSolutions(const std::vector<EditedSolution>& all)
    : project_(find_project()),
      course_(load_course(project_.chapters())),
      pieces_(built(project_, course_, all)),
      servers_(servers_of(project_, pieces_)) {
  for (const auto& edited : all) steps_[edited.name] = edited.step;
}

Report EditedSolutions::judge(const std::string& name, const std::vector<int>& worlds) {
  const auto piece = std::ranges::find(pieces_, name, &CachedProgram::name);
  if (piece == pieces_.end()) throw Error("no edited solution is called " + name);
  if (piece->program.empty()) throw Error(join(piece->output, "\n"));
  CheckOptions options;
  options.program = piece->program.string();
  options.build = false;
  options.worlds = worlds;
  options.servers = &servers_;
  return check_step(project_, course_, course_.step(steps_.at(name)), options);
}

}  // namespace checker

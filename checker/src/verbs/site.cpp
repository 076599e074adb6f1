#include "site/site.hpp"

#include <cstdio>

#include "support/files.hpp"
#include "verbs/options.hpp"

namespace checker {

int run_site(const Project& project, const Arguments& arguments) {
  const cxxopts::Options options(
      "./workbook site", "Prints the settings of sbatch/site.conf as sbatch's variables.\n");
  if (!parse(options, "", "Use it like this: eval \"$(./workbook site)\"", arguments)) return 0;

  const auto file = project.source / "sbatch" / "site.conf";
  const auto exports = site_exports(parse_site(read_file(file), project.shown(file)));
  std::fputs(exports.c_str(), stdout);
  return 0;
}

}  // namespace checker

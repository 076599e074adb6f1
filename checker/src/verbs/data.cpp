#include "data/get.hpp"
#include "data/manifest.hpp"
#include "data/years.hpp"
#include "support/error.hpp"
#include "terminal/terminal.hpp"
#include "verbs/options.hpp"

namespace checker {

namespace {

namespace fs = std::filesystem;

void list_sets() {
  for (const auto& set : data::sets()) {
    const auto folder = data::usual_folder(set);
    std::string name = set.name;
    name.resize(10, ' ');
    terminal::say(terminal::styled(terminal::Style::bold, name) + set.about + ", " + set.size);
    terminal::say("          " + set.terms);
    terminal::say("          " + (fs::exists(folder / data::kManifest)
                                      ? data::training_command(set, folder)
                                      : "not here: ./workbook data " + set.name +
                                            (set.has_years ? " --years 1990,1991" : "")));
  }
}

// Only addresses that curl is allowed to use, without a slash at the end.
std::string parse_from(std::string from) {
  while (from.ends_with('/')) from.pop_back();
  for (const auto* start : {"https://", "http://", "file:///"}) {
    if (from.starts_with(start)) return from;
  }
  throw UsageError("--from takes an address that begins with https://, http:// or file:///.");
}

}  // namespace

int run_data(const Project& /*project*/, const Arguments& arguments) {
  cxxopts::Options options("./workbook data",
                           "Lists the real data sets, or fetches one for a task to read.\n");
  options.add_options()("into", "Folder of the set (default: NAME in the cache folder)",
                        cxxopts::value<std::string>(), "FOLDER")(
      "years", "The years of era5, such as 1990,1993-1995", cxxopts::value<std::string>(), "LIST")(
      "yes", "Fetch more than 1 GB without asking")(
      "verify", "Compare the files with their first download, fetch nothing")(
      "from", "Another server or folder that has the same files", cxxopts::value<std::string>(),
      "URL")("trust", "Take archives whose SHA-256 is not the published one");
  options.add_options("hidden")("names", "", cxxopts::value<std::vector<std::string>>());
  options.parse_positional({"names"});
  const auto parsed = parse(options, "[NAME] [options]",
                            "A break loses nothing: the same command goes on where it ended. The "
                            "cache folder is $WORLDSIZE_CACHE, else ~/.cache/worldsize.",
                            arguments);
  if (!parsed) return 0;
  if (!parsed->count("names")) {
    list_sets();
    return 0;
  }
  const auto& names = (*parsed)["names"].as<std::vector<std::string>>();
  if (names.size() > 1) throw UsageError("\"" + names[1] + "\" is one argument too many.");
  const auto& set = data::find_set(names[0]);
  data::Request request;
  request.folder = parsed->count("into") ? fs::path((*parsed)["into"].as<std::string>())
                                         : data::usual_folder(set);
  if (parsed->count("verify")) return data::verify(set, request.folder) ? 0 : 1;
  if (parsed->count("from")) request.from = parse_from((*parsed)["from"].as<std::string>());
  if (parsed->count("years")) {
    if (!set.has_years) throw UsageError("--years is for era5 only.");
    request.years = data::parse_years((*parsed)["years"].as<std::string>());
  }
  request.yes = parsed->count("yes") > 0;
  request.trust = parsed->count("trust") > 0;
  data::get(set, request);
  return 0;
}

}  // namespace checker

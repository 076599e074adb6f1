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
                                      : "not fetched yet: ./workbook data " + set.name +
                                            (set.has_years ? " --years 1990,1991" : "")));
  }
}

// Only addresses that curl is allowed to use, without a slash at the end.
std::string parse_from(std::string from) {
  while (from.ends_with('/')) from.pop_back();
  for (const auto* start : {"https://", "http://", "file:///"}) {
    if (from.starts_with(start)) return from;
  }
  throw UsageError("--from must begin with https://, http:// or file:///.");
}

}  // namespace

int run_data(const Project& /*project*/, const Arguments& arguments) {
  cxxopts::Options options("./workbook data", "Lists real data sets, or fetches one for a task.\n");
  options.add_options()("into", "Folder for the data (default: NAME in the cache folder)",
                        cxxopts::value<std::string>(), "FOLDER")(
      "years", "Years of era5, for example 1990,1993-1995", cxxopts::value<std::string>(), "LIST")(
      "yes", "Fetch more than 1 GB without asking")(
      "verify", "Compare the files with the first download; fetch nothing")(
      "from", "Another server or folder with the same files", cxxopts::value<std::string>(), "URL")(
      "trust", "Accept archives with a SHA-256 other than the published one");
  options.add_options("hidden")("names", "", cxxopts::value<std::vector<std::string>>());
  options.parse_positional({"names"});
  const auto parsed = parse(options, "[NAME] [options]",
                            "If it is interrupted, run the same command again: it continues. The "
                            "cache folder is\n$WORLDSIZE_CACHE, or else ~/.cache/worldsize.",
                            arguments);
  if (!parsed) return 0;
  if (!parsed->count("names")) {
    list_sets();
    return 0;
  }
  const auto& names = (*parsed)["names"].as<std::vector<std::string>>();
  if (names.size() > 1) throw UsageError("\"" + names[1] + "\" is an extra argument.");
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

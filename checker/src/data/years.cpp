#include "data/years.hpp"

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>

#include "data/curl.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker::data {

namespace fs = std::filesystem;

namespace {

constexpr int kFirst = 1900, kLast = 2100;

int year_of(const std::string& text) {
  static const std::regex four_digits("\\d{4}");
  const int year = std::regex_match(text, four_digits) ? std::stoi(text) : 0;
  if (year >= kFirst && year <= kLast) return year;
  throw UsageError("\"" + text + "\" is not a year. --years takes a list such as 1990,1993-1995.");
}

std::vector<int> sorted(const std::set<int>& years) { return {years.begin(), years.end()}; }

std::string in_words(const std::vector<int>& years) {
  std::vector<std::string> words;
  for (const int year : years) words.push_back(std::to_string(year));
  return join(words, ", ");
}

// A folder of this machine has no page that lists it: its names stand in for one.
std::string page_of(const std::string& address) {
  constexpr std::string_view local = "file://";
  if (!address.starts_with(local)) return read_text(address + "/");
  std::string page;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(address.substr(local.size()), failure)) {
    page += "href=\"" + entry.path().filename().string() + "\"\n";
  }
  return page;
}

std::vector<int> years_of(const std::string& base, const std::string& split) {
  auto years = years_listed(page_of(base + "/" + split));
  if (!years.empty()) return years;
  throw Error(base + "/" + split +
              "/: This page lists no files such as 1990.h5. Fix: open it in a browser, or name "
              "another server with --from.");
}

}  // namespace

std::vector<int> parse_years(const std::string& text) {
  std::set<int> years;
  for (const auto& part : split(text, ',')) {
    const auto dash = part.find('-');
    const int first = year_of(part.substr(0, dash));
    const int last = dash == std::string::npos ? first : year_of(part.substr(dash + 1));
    for (int year = first; year <= last; ++year) years.insert(year);
  }
  if (years.empty()) throw UsageError("--years takes a list such as 1990,1993-1995.");
  return sorted(years);
}

std::vector<int> years_listed(const std::string& page) {
  static const std::regex link("href=\"[^\"]*?(\\d{4})\\.h5\"", std::regex::icase);
  std::set<int> years;
  for (std::sregex_iterator at(page.begin(), page.end(), link), end; at != end; ++at) {
    years.insert(std::stoi((*at)[1]));
  }
  return sorted(years);
}

std::vector<std::string> files_of_years(const std::string& base, const std::vector<int>& years) {
  std::vector<std::string> files{"stats/global_means.npy", "stats/global_stds.npy"}, known;
  auto unknown = years;
  for (const std::string split : {"train", "valid", "test"}) {
    const auto there = years_of(base, split);
    known.push_back(split + " " + in_words(there));
    std::vector<int> chosen;
    std::ranges::set_intersection(there, years, std::back_inserter(chosen));
    for (const int year : chosen) std::erase(unknown, year);
    if (chosen.empty()) chosen.push_back(there.front());  // no trainer runs without
    for (const int year : chosen) files.push_back(split + "/" + std::to_string(year) + ".h5");
  }
  if (unknown.empty()) return files;
  throw Error(base + ": It has no " + in_words(unknown) + ". Fix: choose from " +
              join(known, "; ") + ".");
}

}  // namespace checker::data

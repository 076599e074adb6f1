#include <nlohmann/json.hpp>

#include "bench/suite.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker::bench {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Of a title or a label: small letters, digits and hyphens.
std::string file_name_of(const std::string& words) {
  std::string name;
  for (const char letter : words) {
    if (std::isalnum(static_cast<unsigned char>(letter))) {
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  while (name.ends_with('-')) name.pop_back();
  return name;
}

fs::path json_of(fs::path place) { return place += ".json"; }

// What makes a result another row's.
json identity_of(const SuiteRow& row) {
  return {{"program", row.program},
          {"arguments", row.arguments},
          {"ranks", row.ranks},
          {"samples", row.samples}};
}

}  // namespace

fs::path place_of(const SuiteTable& table, const SuiteRow& row) {
  return fs::path("rows") / file_name_of(table.title) /
         (file_name_of(row.label) + "-" + std::to_string(row.ranks));
}

void write_measured(const fs::path& place, const SuiteTable& table, const SuiteRow& row,
                    const Measured& measured) {
  const json result{{"table", table.title},        {"label", row.label},
                    {"row", identity_of(row)},     {"figures", measured.figures},
                    {"failure", measured.failure}, {"output", measured.output}};
  write_file(json_of(place), result.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

std::optional<Measured> read_measured(const fs::path& place, const SuiteRow& row) {
  const auto file = json_of(place);
  if (!fs::exists(file)) return std::nullopt;
  try {
    const auto result = json::parse(read_file(file));
    if (result.at("row") != identity_of(row)) return std::nullopt;
    return Measured{.figures = result.at("figures"),
                    .failure = result.at("failure"),
                    .output = result.at("output")};
  } catch (const json::exception& error) {
    throw Error(file.string() + " is damaged: " + error.what() +
                " Fix: remove the file. The row is then measured again.");
  }
}

}  // namespace checker::bench

#include "verbs/arguments.hpp"

#include <algorithm>

#include "support/error.hpp"

namespace checker {

bool has_option(const Arguments& arguments, const std::string& option) {
  return std::ranges::any_of(arguments, [&](const std::string& argument) {
    return argument == option || argument.starts_with(option + "=");
  });
}

Arguments with_output(const Arguments& arguments, const std::filesystem::path& output) {
  if (has_option(arguments, "--output")) return arguments;
  std::error_code error;
  std::filesystem::create_directories(output, error);
  if (error)
    throw Error("Cannot make the folder " + output.string() + ": " + error.message() + ".");
  auto all = arguments;
  all.insert(all.end(), {"--output", output.string()});
  return all;
}

}  // namespace checker

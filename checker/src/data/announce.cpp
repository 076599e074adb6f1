#include "data/announce.hpp"

#include <unistd.h>

#include <iostream>

#include "support/error.hpp"
#include "terminal/terminal.hpp"

namespace checker::data {

namespace {

constexpr uintmax_t kAskAbove = 1'000'000'000;

bool somebody_says_yes(const std::string& question) {
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0) return false;
  std::cout << question << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes";
}

}  // namespace

void announce(const Set& set, const Request& request, const Amount& amount, const Place& place) {
  const auto fetched = bytes_of(amount.to_fetch());
  const auto free = std::filesystem::space(place.folder()).available;
  terminal::say(set.name + ": " + set.about + " (" + set.terms + ")");
  terminal::say("  from   " + amount.from);
  terminal::say("  into   " + place.folder().string() + ", " + bytes_of(free) + " free");
  terminal::say("  fetch  " + fetched +
                (amount.here > 0 ? ", and " + bytes_of(amount.here) + " were fetched before" : ""));
  if (amount.beside > 0) terminal::say("  unpack " + bytes_of(amount.beside));
  place.expect_space(amount.to_fetch() + amount.beside);
  if (amount.to_fetch() <= kAskAbove || request.yes) return;
  if (somebody_says_yes("Fetch " + fetched + "? [y/N] ")) return;
  throw Error("Nothing was fetched, because " + fetched +
              " is a lot. Fix: add --yes, or choose another folder with --into FOLDER.");
}

}  // namespace checker::data

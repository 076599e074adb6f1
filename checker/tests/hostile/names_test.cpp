// Names of hand-ins that mean something to a terminal, a shell, a spreadsheet or a browser.
#include <nlohmann/json.hpp>
#include <pugixml.hpp>

#include "files.hpp"
#include "hostile/attack.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> kNames{
    "line\nbreak",
    "TODO 1\rdone",
    "quotes \" ' ` \\",
    "<img src=x onerror=alert(1)>",
    "]]><case>",
    "\x1b[31mred \x1b]0;title\x07",
    "\x9b 31m",
    "invalid \xff\xfe\xc3",
    "=cmd|'C calc'!A0",
    "+1+1",
    "-rf",
    "@sum(1)",
    "comma, semicolon; tab\t",
    "$(touch harm)",
    "; touch harm",
    "%s%n%n",
    "exe.\xe2\x80\xaetxt",
    "*",
    " ",
    std::string(255, 'x'),
};

// What a spreadsheet would compute.
bool begins_a_formula(const std::string& line) {
  const auto first = line.find_first_not_of('"');
  return first != line.npos &&
         std::string_view("=+-@\t\r").find(line[first]) != std::string_view::npos;
}

class HostileNames : public BoxedTest {};

TEST_F(HostileNames, AreNamesAndNothingElse) {
  const auto hand_ins = folder_.path() / "class", out = folder_.path() / "out";
  for (const auto& name : kNames) fs::create_directories(hand_ins / name);
  const std::string long_name(5000, 'y');
  write_file(folder_.path() / "scheme.yaml", "students: [" + long_name + "]\n");
  const auto ran = run_program({"sh", "-c",
                                "cd " + folder_.path().string() +
                                    " && exec " CHECKER_PROGRAM " grade class --output " +
                                    out.string() + " --scheme scheme.yaml"});
  EXPECT_EQ(ran.status, 0) << ran.text;
  EXPECT_FALSE(fs::exists(folder_.path() / "harm"));
  for (const char* control : {"\x1b", "\r", "\x07", "\x9b", "\xe2\x80\xae", "\xff"}) {
    EXPECT_THAT(ran.text, Not(HasSubstr(control)));
  }
  for (const auto& line : split_lines(ran.text)) EXPECT_LT(line.size(), 400U);

  const auto json = nlohmann::json::parse(read_file(out / "report.json"));
  EXPECT_EQ(json.at("students").size(), kNames.size() + 1);
  pugi::xml_document junit;
  EXPECT_TRUE(junit.load_file((out / "report.xml").c_str()));
  const auto suites = junit.child("testsuites").children("testsuite");
  EXPECT_EQ(std::distance(suites.begin(), suites.end()), kNames.size() + 1);
  const auto csv = split_lines(read_file(out / "report.csv"));
  EXPECT_EQ(csv.size(), kNames.size() + 2);
  for (const auto& line : csv) EXPECT_FALSE(begins_a_formula(line)) << line;
  const auto html = read_file(out / "report.html");
  EXPECT_THAT(html, Not(HasSubstr("<img")));
  EXPECT_THAT(html, Not(HasSubstr("\x1b")));
  EXPECT_EQ(left_behind(), "");
}

}  // namespace
}  // namespace checker::testing

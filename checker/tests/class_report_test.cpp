// Points and marks, and the forms in which a class's report is handed on.
#include "grade/class_report.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <pugixml.hpp>

#include "class_fixture.hpp"
#include "files.hpp"
#include "grade/render.hpp"

namespace checker::grade {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using testing::class_of;
using testing::course;
using testing::half_done;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using testing::student;
using testing::todos;

TEST(Marks, CountWhatIsDoneAndNotWhatCouldNotBeGraded) {
  auto untried = testing::verdict(14, State::not_judged, "no Slurm");
  untried.untried = true;
  const auto one = student("alice", {testing::report(course(), "02_setup"), half_done(),
                                     testing::report(course(), "07_multi_node", {untried})});
  EXPECT_EQ(one.marks.at(1), Mark::done);
  EXPECT_EQ(one.marks.at(10), Mark::wrong);
  EXPECT_EQ(one.marks.at(4), Mark::missing);
  EXPECT_EQ(one.marks.at(14), Mark::not_graded);
  EXPECT_EQ(one.points, 6);  // 1 to 3 and 15 to 17
  EXPECT_EQ(one.possible, static_cast<double>(todos().size()) - 1);
}

TEST(Marks, OfAHandInThatTheJudgeFailedOnAreNotZero) {
  Student one;
  mark(one, course(), plain_scheme(todos()), false);
  EXPECT_EQ(one.possible, 0);
  for (const auto& [todo, mark] : one.marks) EXPECT_EQ(mark, Mark::not_graded) << todo;
}

TEST(Marks, LateWorkIsWorthLess) {
  Student one;
  one.reports = {testing::report(course(), "02_setup")};
  one.late = true;
  auto scheme = plain_scheme(todos());
  scheme.points[2] = 5;
  scheme.late_factor = 0.5;
  mark(one, course(), scheme, true);
  EXPECT_EQ(one.points, 3.5);
}

TEST(ClassReport, SaysWhichTodoFailsAndWhy) {
  const auto report = class_of({student("a", {half_done()}), student("b", {half_done()})});
  for (const auto& summary : report.by_todo()) {
    if (summary.todo != 10) continue;
    EXPECT_EQ(summary.counts.at(Mark::wrong), 2U);
    ASSERT_EQ(summary.findings.size(), 1U);
    EXPECT_EQ(summary.findings[0], std::pair(std::string("loss_of_one_rank"), size_t{2}));
  }
}

TEST(ShownName, IsOneLineOfText) {
  EXPECT_EQ(shown_name("Zoë Ångström 李"), "Zoë Ångström 李");
  EXPECT_EQ(shown_name("a\nb\x1b[31m"), "a\\x0Ab\\x1B[31m");
  EXPECT_EQ(shown_name("\xff\xc0\x80"), "\\xFF\\xC0\\x80");
  EXPECT_EQ(shown_name("a\u202egpj.exe"), "a\\xE2\\x80\\xAEgpj.exe");
  const auto cut = shown_name(std::string(5000, 'x') + "end", 20);
  EXPECT_THAT(cut, AllOf(StartsWith("xxxxxxxxxx…"), HasSubstr("end")));
}

// A name that is markup, a formula, a terminal's command, and no text.
const std::string kHostile = "=cmd()|'/C calc'!A1<script>alert(1)</script>\"\x1b[2J\xff";

TEST(ClassCsv, KeepsSpreadsheetsFromComputing) {
  const auto csv = to_csv(class_of({student(kHostile, {half_done()}), student("+1", {})}));
  EXPECT_THAT(csv, HasSubstr("\r\n\"'=cmd()"));
  EXPECT_THAT(csv, HasSubstr("\r\n\"'+1\""));
  EXPECT_THAT(csv, HasSubstr("\"\"\\x1B[2J"));
  EXPECT_THAT(csv, HasSubstr("\"wrong: loss_of_one_rank\""));
  EXPECT_THAT(csv, Not(HasSubstr("\x1b")));
}

TEST(ClassJson, HoldsEverythingAndIsJsonWhateverTheNames) {
  const auto value = json::parse(to_json(class_of({student(kHostile, {half_done()})})));
  const auto& one = value.at("students").at(0);
  EXPECT_THAT(one.at("name").get<std::string>(), HasSubstr("<script>"));
  EXPECT_EQ(one.at("todos").at("10").at("finding"), "loss_of_one_rank");
  EXPECT_EQ(one.at("reports").at(0).at("step"), "05_all_reduce_loss");
  EXPECT_EQ(value.at("course"), "0.1.0-test");
}

// What a JSON Schema validator of others says.
TEST(ClassJson, FollowsItsSchema) {
  if (testing::run_program({"python3", "-c", "import jsonschema"}).status != 0) {
    GTEST_SKIP() << "no python3-jsonschema";
  }
  auto one = student(kHostile, {half_done()});
  one.reports[0].timeline = Timeline{{{{0, 0.1, "all_reduce of 2 float64 (SUM)"}}}};
  one.reports[0].compile_error = CompileError{"train.cpp:1", "expected ';'", "int main("};
  one.handed_in = Time();
  auto absent = student("erin", {});
  absent.absent = true;
  const TemporaryFolder folder;
  const auto check = [&](const std::string& text) {
    write_file(folder.path() / "report.json", text);
    return testing::run_program(
        {"python3", "-c",
         "import json, sys, jsonschema\n"
         "jsonschema.validate(*[json.load(open(name)) for name in sys.argv[1:]])",
         (folder.path() / "report.json").string(),
         PROJECT_FOLDER "/checker/src/grade/class.schema.json"});
  };
  const auto whole = check(to_json(class_of({one, absent})));
  EXPECT_EQ(whole.status, 0) << whole.text;
  auto spoilt = json::parse(to_json(class_of({one})));
  spoilt["students"][0]["todos"]["10"]["mark"] = "perhaps";
  EXPECT_NE(check(spoilt.dump()).status, 0);
}

TEST(ClassJUnit, IsXmlWhateverTheNames) {
  pugi::xml_document document;
  const auto xml = to_junit(class_of({student(kHostile, {half_done()})}));
  ASSERT_TRUE(document.load_string(xml.c_str()));
  const auto suite = document.child("testsuites").child("testsuite");
  EXPECT_THAT(suite.attribute("name").value(), HasSubstr("<script>"));
  EXPECT_EQ(suite.attribute("tests").as_uint(), todos().size());
  const auto wrong = suite.find_child([](const pugi::xml_node& test) {
    return std::string(test.child("failure").attribute("type").value()) == "loss_of_one_rank";
  });
  EXPECT_THAT(wrong.child("failure").attribute("message").value(),
              HasSubstr("Every rank reports its own loss."));
}

TEST(ClassHtml, NeedsNoNetworkAndNamesAreText) {
  auto one = student(kHostile, {half_done()});
  one.reports[0].timeline =
      Timeline{{{{0, 0.1, "all_reduce of 2 float64 (SUM)"}}, {{0, 0.2, "broadcast <b>", false}}}};
  const auto html = to_html(class_of({one}));
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(1)"));
  EXPECT_THAT(html, Not(HasSubstr("http:")));
  EXPECT_THAT(html, Not(HasSubstr("https:")));
  EXPECT_THAT(html, AllOf(HasSubstr("broadcast &lt;b&gt;"), HasSubstr("did not end")));
  EXPECT_THAT(html, HasSubstr("Every rank reports its own loss."));
}

TEST(ClassLines, FitAndSayWhatFailsMost) {
  const auto lines = to_lines(class_of({student(kHostile, {half_done()})}), 100);
  std::string all;
  for (const auto& line : lines) all += line + "\n";
  EXPECT_THAT(all, Not(HasSubstr("\x1b")));
  EXPECT_THAT(all, HasSubstr("TODO 10 is wrong for 1 student, most often because: "
                             "loss_of_one_rank (1)"));
}

TEST(SchemeFile, GivesPointsTimesAndNames) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "scheme.yaml";
  write_file(file,
             "points: {default: 2, TODO 8: 3.5}\ndue: 2026-12-01 18:00\nlate: 0.5\n"
             "handed_in: {alice: 2026-12-01 18:01}\nstudents: [alice, bob]\n");
  const auto scheme = read_scheme(file, todos());
  EXPECT_EQ(scheme.points.at(8), 3.5);
  EXPECT_EQ(scheme.points.at(9), 2);
  EXPECT_EQ(in_words(*scheme.due), "2026-12-01 18:00");
  EXPECT_GT(scheme.handed_in.at("alice"), *scheme.due);
  EXPECT_EQ(scheme.students.size(), 2U);
  EXPECT_EQ(scheme.late_factor, 0.5);
}

TEST(SchemeFile, IsRefusedSayingWhatAndWhere) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "scheme.yaml";
  const auto complaint = [&](const std::string& text) {
    write_file(file, text);
    return testing::error_of([&] { read_scheme(file, todos()); });
  };
  EXPECT_THAT(complaint("points:\n  TODO 99: 1\n"),
              HasSubstr("scheme.yaml:2: unknown key TODO 99"));
  EXPECT_THAT(complaint("points: {default: -1}"), HasSubstr("expected a number of points"));
  EXPECT_THAT(complaint("due: tomorrow"), HasSubstr("scheme.yaml:1: expected a time"));
  EXPECT_THAT(complaint("late: 2"), HasSubstr("from 0 to 1"));
  EXPECT_THAT(complaint("poinst: {}"), HasSubstr("Did you mean 'points'?"));
}

}  // namespace
}  // namespace checker::grade

// What verify keeps, and the published figures that rest on it.
#include "judge/kept_results.hpp"

#include <gmock/gmock.h>

#include <set>

#include "files.hpp"
#include "judge/bundle.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {
namespace {

namespace fs = std::filesystem;
using testing::course;
using ::testing::HasSubstr;

Project project() {
  Project here;
  here.source = PROJECT_FOLDER;
  return here;
}

std::vector<Sample> samples() { return catalogue_samples(course(), load_catalogue(course())); }

Sample sample(Form form = Form::solution) {
  return {.todo = 8,
          .name = "x",
          .files = {{"train.cpp", "int main() {}"}},
          .form = form,
          .step = &course().step("04")};
}

KeptResult result(const std::string& key, const std::string& form = "solution") {
  return {.todo = 8,
          .name = "x",
          .form = form,
          .device = "cpu",
          .kind = "trainer",
          .wanted = "rejected",
          .as_wanted = true,
          .blamed_rightly = true,
          .deviation = 0.25,
          .findings = "TODO 8 gradients_summed",
          .key = key,
          .commit = "0123abc+"};
}

TEST(KeptResults, AreReadAsTheyWereWritten) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "results.tsv";
  KeptResults kept(file);
  kept.add(result("k1"));
  kept.add(result("k2", "student"));
  kept.write();
  const KeptResults again(file);
  const auto* found = again.find(sample(), "cpu", "k1");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->findings, "TODO 8 gradients_summed");
  EXPECT_EQ(found->deviation, 0.25);
  EXPECT_EQ(found->commit, "0123abc+");
  EXPECT_TRUE(found->as_wanted && found->blamed_rightly);
  EXPECT_NE(again.find(sample(Form::student), "cpu", "k2"), nullptr);
  EXPECT_EQ(again.find(sample(), "cpu", "k2"), nullptr) << "it has changed since";
  EXPECT_EQ(again.find(sample(), "cuda", "k1"), nullptr);
}

TEST(KeptResults, OfTwoProcessesAreKeptSideBySide) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "results.tsv";
  KeptResults one(file), other(file);
  one.keep(result("k1"));
  other.keep(result("k2", "student"));
  one.keep(result("k3"));
  const KeptResults again(file);
  EXPECT_NE(again.find(sample(), "cpu", "k3"), nullptr) << "the later one counts";
  EXPECT_NE(again.find(sample(Form::student), "cpu", "k2"), nullptr);
  EXPECT_EQ(again.all().size(), 2U);
}

TEST(KeptResults, ALineThatIsNoResultIsAnError) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "results.tsv";
  write_file(file, "# a comment\n8\tx\tsolution\n");
  EXPECT_THAT(testing::error_of([&] { const KeptResults kept(file); }),
              HasSubstr("results.tsv:2: 3 columns, and a result has 12."));
}

TEST(ResultKeys, ChangeWithWhateverAVerdictDependsOn) {
  const ResultKeys keys(project(), course());
  auto other = sample();
  other.files[0].text += " ";
  std::set<std::string> all{keys.of(sample(), "cpu"), keys.of(sample(), "cuda"),
                            keys.of(sample(Form::student), "cpu"), keys.of(other, "cpu")};
  other = sample();
  other.job = true;
  all.insert(keys.of(other, "cpu"));
  EXPECT_EQ(all.size(), 5U);
  EXPECT_EQ(keys.of(sample(), "cpu"), ResultKeys(project(), course()).of(sample(), "cpu"));
}

TEST(ResultKeys, ChangeWithTheSourcesOfTheJudge) {
  const TemporaryFolder folder;
  Project copy;
  copy.source = folder.path();
  for (const char* part :
       {"checker/src/evidence", "checker/src/judge", "checker/src/course", "checker/src/plan",
        "checker/src/process", "checker/src/jobs", "checker/src/lab", "checker/replay", "tasks",
        "distributed_utils/include", "distributed_utils/src"}) {
    write_file(folder.path() / part / "file", "text");
  }
  const auto key = [&] { return ResultKeys(copy, course()).of(sample(), "cpu"); };
  const auto before = key();
  write_file(folder.path() / "tasks/tests/test", "a test");
  write_file(folder.path() / "checker/src/lab/file", "only jobs need it");
  EXPECT_EQ(key(), before);
  write_file(folder.path() / "checker/src/judge/file", "another rule");
  EXPECT_NE(key(), before);
}

std::string part_of(size_t part, size_t all) {
  return all == 0 ? std::string("–") : std::to_string(part) + " of " + std::to_string(all);
}

// One row of the table in the chapters' README, as the results make it.
std::string row(const std::string& label, const std::vector<KeptResult>& results) {
  Tally tally;
  for (const auto& result : results) tally.add(result);
  return "| " + label + " | " + part_of(tally.rejected, tally.wrong) + " | " +
         part_of(tally.blamed, tally.wrong) + " | " + part_of(tally.accepted, tally.right) + " |\n";
}

TEST(PublishedResults, AreOfEveryProgramAndMakeTheReadmesTables) {
  const auto all = KeptResults(published_results(project())).all();
  std::set<std::string> judged, wanted;
  std::vector<KeptResult> solutions, students, unfinished, jobs, plain, rounds;
  for (const auto& result : all) {
    if (result.device != "cpu") continue;
    judged.insert(std::to_string(result.todo) + " " + result.name + " " + result.form);
    auto& part = result.form == "whole"      ? rounds
                 : result.kind == "job"      ? jobs
                 : result.kind == "plain"    ? plain
                 : result.wanted == "states" ? unfinished
                 : result.form == "solution" ? solutions
                                             : students;
    part.push_back(result);
  }
  auto programs = samples();
  for (auto& sample : whole_samples(course(), load_whole_programs(course())))
    programs.push_back(std::move(sample));
  for (const auto& sample : programs) {
    wanted.insert(std::to_string(sample.todo) + " " + sample.name + " " +
                  (sample.form == Form::whole     ? "whole"
                   : sample.form == Form::student ? "student"
                                                  : "solution"));
  }
  for (const auto& name : wanted) {
    EXPECT_TRUE(judged.contains(name))
        << name << " was not judged. Fix: ./workbook verify --record";
  }
  for (const auto& name : judged) {
    EXPECT_TRUE(wanted.contains(name)) << name << " is in no catalogue. Fix: delete its line";
  }
  const std::string page = "checker/chapters/README.md";
  const auto readme = read_file(project().source / page);
  for (const auto& line : {row("trainers, by what they do alone", solutions),
                           row("trainers, as students' files", students),
                           row("unfinished exercises, the state of every TODO", unfinished),
                           row("job scripts under Slurm, both ways", jobs),
                           row("exercises C1 to C11, both ways", plain),
                           row("whole programs by authors who had not seen the rules", rounds)}) {
    EXPECT_NE(readme.find(line), readme.npos) << page << " lacks this line: " << line;
  }
  // The headline figures are the first row's.
  Tally tally;
  for (const auto& result : solutions) tally.add(result);
  const auto headlines = read_file(project().source / "README.md");
  for (const auto& line :
       {"| wrong edits of trainers, rejected | " + part_of(tally.rejected, tally.wrong) + " |",
        "| right edits of trainers, accepted | " + part_of(tally.accepted, tally.right) + " |"}) {
    EXPECT_NE(headlines.find(line), headlines.npos) << "README.md lacks this line: " << line;
  }
}

TEST(Bundle, TakesOnlyWhatDoesNotReachBeyondItsProgram) {
  const std::string main = "int main() {\n  return 0;\n}\n";
  EXPECT_TRUE(fits_a_bundle("#include <vector>\nnamespace data = torch::data;\n" + main));
  EXPECT_TRUE(
      fits_a_bundle("using namespace distributed_utils;\nvoid f(int a,\n       int b) {\n"
                    "}\n" +
                    main));
  for (const std::string beyond :
       {"#define main other\n", "namespace tasks {\n}\n", "static int global = 3;\n",
        "int global;\n", "extern \"C\" void f() {}\n", "std::vector<int> list = {\n  1};\n",
        "void* operator new(size_t size) {\n  return nullptr;\n}\n"}) {
    EXPECT_FALSE(fits_a_bundle(beyond + main)) << beyond;
  }
  EXPECT_FALSE(fits_a_bundle("int main() {\n}\n")) << "elsewhere main() returns nothing by itself";
}

TEST(Bundle, IsOneSourceWithANamespaceForEach) {
  const std::vector<fs::path> sources{"/w/a/train.cpp", "/w/b/train.cpp"};
  const std::vector<std::string> texts{
      "#include <map>\nint main() { return 0; }\n",
      "#include <map>\n#include <set>\nint main() { return 0; }\n"};
  const auto source = bundle_of(sources, texts, "/c/served.hpp");
  EXPECT_THAT(source, HasSubstr("#include \"/c/served.hpp\"\n"));
  EXPECT_THAT(source, HasSubstr("#include <map>\n#include <set>\n"));
  EXPECT_THAT(source, HasSubstr("namespace program_1 {\n#include \"/w/b/train.cpp\"\n}\n"));
  EXPECT_THAT(source, HasSubstr("ends_with(\"/b/train\")) return call(program_1::main, "));
}

}  // namespace
}  // namespace checker

// Golden results: the file, how results are compared, and what makes a machine's key.
#include <gmock/gmock.h>

#include "files.hpp"
#include "golden/compare.hpp"
#include "golden/other_commit.hpp"
#include "golden/runs.hpp"
#include "support/text.hpp"

namespace checker::golden {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Numbers that no few digits bring back.
Entry some_entry(const std::string& capability = "AVX2") {
  return {.key = {"2.11.0", "2.36", capability, "GenuineIntel", "avx avx2 fma"},
          .results = {{"01 fp32 rank 0 of 1", {"83dc381c20ccc1aa", "1e", {1.0 / 3, 0.1, 2e-7, 3}}},
                      {"06 fp64 rank 1 of 2", {"none", "2f", {2.0 / 3, 1e300, 4, 5}}}}};
}

class GoldenFile : public ::testing::Test {
 protected:
  std::string error_in(const std::string& text) const {
    write_file(file_, text);
    return error_of([&] { read_entries(file_); });
  }

  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_.path() / "results.yaml";
};

TEST_F(GoldenFile, BringsEveryBitBack) {
  EXPECT_THAT(read_entries(file_), IsEmpty());
  write_file(file_, text_of(std::vector{some_entry(), some_entry("AVX512")}));
  const auto entries = read_entries(file_);
  ASSERT_EQ(entries.size(), 2);
  EXPECT_EQ(entries[0].key, some_entry().key);
  EXPECT_EQ(entries[0].results, some_entry().results);
  EXPECT_EQ(entries[1].key, some_entry("AVX512").key);
}

TEST_F(GoldenFile, HasALineForEachRank) {
  const auto text = text_of(std::vector{some_entry()});
  EXPECT_THAT(text, HasSubstr("    06 fp64 rank 1 of 2: {parameters: none, batches: 2f, losses: "
                              "[0.6666666666666666, 1e+300, 4, 5]}\n"));
  EXPECT_THAT(text, HasSubstr("changes nothing else and says why"));
}

TEST_F(GoldenFile, IsReadStrictly) {
  const auto good = text_of(std::vector{some_entry()});
  EXPECT_EQ(error_in(good), "no error");
  const auto begin = file_.string() + ":";
  EXPECT_EQ(error_in("torch: 2"), begin + "1: a list (- torch: ...) is expected here.");
  EXPECT_EQ(error_in(replaced(good, "glibc", "glib")),
            begin + "7: unknown key glib. Did you mean 'glibc'?");
  EXPECT_EQ(error_in(replaced(good, "  glibc: 2.36\n", "")),
            begin + "6: the key glibc is missing.");
  EXPECT_EQ(error_in(replaced(good, "1e+300", "much")),
            begin + "13: losses must be a list, in square brackets.");
  EXPECT_EQ(error_in(replaced(good, "01 fp32 rank 0 of 1", "06 fp64 rank 1 of 2")),
            begin + "13: 06 fp64 rank 1 of 2 stands here twice.");
  EXPECT_EQ(error_in(good + good.substr(good.find("- torch"))),
            begin + "14: this machine's key stands here twice.");
  EXPECT_THAT(error_in("- [torch"), HasSubstr(begin));
}

// The first loss of the first rank, changed by so much of itself.
Results with_change(double relative) {
  auto results = some_entry().results;
  results.begin()->second.losses[0] *= 1 + relative;
  return results;
}

TEST(GoldenComparison, FindsOneBit) {
  const auto wanted = some_entry().results;
  EXPECT_THAT(compare_bits(wanted, wanted).wrong, IsEmpty());
  const auto wrong = compare_bits(wanted, with_change(2.3e-16)).wrong;
  ASSERT_EQ(wrong.size(), 1);
  EXPECT_EQ(wrong[0],
            "01 fp32 rank 0 of 1: training loss of epoch 1 0.33333333333333337, not "
            "0.3333333333333333 (1.7e-16 of it)");
  auto found = wanted;
  found.begin()->second.parameters = "83dc381c20ccc1ab";
  EXPECT_THAT(compare_bits(wanted, found).wrong,
              ElementsAre("01 fp32 rank 0 of 1: final parameters differ"));
  found = wanted;
  found.begin()->second.batches = "1f";
  EXPECT_THAT(compare_bits(wanted, found).wrong,
              ElementsAre("01 fp32 rank 0 of 1: losses of batches differ"));
}

TEST(GoldenComparison, AllowsLossesAMillionth) {
  const auto wanted = some_entry().results;
  const auto near = compare_losses(wanted, with_change(1e-7));
  EXPECT_THAT(near.wrong, IsEmpty());
  EXPECT_NEAR(near.largest, 1e-7, 1e-9);
  EXPECT_THAT(compare_losses(wanted, with_change(2e-6)).wrong,
              ElementsAre(HasSubstr("training loss of epoch 1")));
  EXPECT_THAT(compare_losses(wanted, with_change(-2e-6)).wrong.size(), 1);
  EXPECT_THAT(compare_losses(wanted, with_change(NAN)).wrong.size(), 1);
  auto found = wanted;
  found.begin()->second.parameters = found.begin()->second.batches = "of another machine";
  EXPECT_THAT(compare_losses(wanted, found).wrong, IsEmpty());
}

TEST(GoldenComparison, MissesNoRank) {
  const auto wanted = some_entry().results;
  auto found = wanted;
  found.erase("06 fp64 rank 1 of 2");
  EXPECT_THAT(compare_losses(wanted, found).wrong,
              ElementsAre("06 fp64 rank 1 of 2: this run no longer exists"));
  EXPECT_THAT(compare_bits(found, wanted).wrong,
              ElementsAre("06 fp64 rank 1 of 2: this run is new"));
  found = wanted;
  found.begin()->second.losses.pop_back();
  EXPECT_THAT(compare_losses(wanted, found).wrong,
              ElementsAre("01 fp32 rank 0 of 1: it reports 3 losses, not 4"));
}

TEST(GoldenComparison, TakesTheKeyThatIsMostAlike) {
  const std::vector entries{some_entry("DEFAULT"), some_entry("AVX2")};
  EXPECT_EQ(most_like(entries, some_entry("AVX2").key), &entries[1]);
  EXPECT_EQ(most_like(entries, some_entry("AVX512").key), &entries[0]);
  EXPECT_EQ(most_like(std::vector<Entry>{}, some_entry().key), nullptr);
}

TEST(GoldenUpdate, KeepsWhatStillHolds) {
  const std::vector entries{some_entry("DEFAULT"), some_entry("AVX2")};
  const auto added = updated(entries, some_entry("AVX512"));
  EXPECT_EQ(added.entries.size(), 3);
  const auto again = updated(entries, some_entry("DEFAULT"));
  ASSERT_EQ(again.entries.size(), 2);
  EXPECT_EQ(again.entries[0].key.capability, "DEFAULT");
  EXPECT_EQ(again.dropped, 0);
}

TEST(GoldenUpdate, DropsWhatOlderProgramsComputed) {
  const std::vector entries{some_entry("DEFAULT"), some_entry("AVX2")};
  auto changed = some_entry("AVX2");
  changed.results = with_change(1e-15);
  const auto update = updated(entries, changed);
  ASSERT_EQ(update.entries.size(), 1);
  EXPECT_EQ(update.entries[0].results, changed.results);
  EXPECT_EQ(update.dropped, 1);
  auto unknown = some_entry("AVX512");
  unknown.results = with_change(1e-3);
  EXPECT_EQ(updated(entries, unknown).dropped, 2);
}

TEST(GoldenKey, HoldsWhatTheCpuSays) {
  Key key;
  read_cpu("processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu smep sse2 avx2 fma ibrs\n",
           key);
  EXPECT_EQ(key.vendor, "GenuineIntel");
  EXPECT_EQ(key.flags, "avx2 fma sse2");
  read_cpu("Features\t: fp asimd crc32 sve asimdhp\nCPU implementer\t: 0x41\n", key);
  EXPECT_EQ(key.vendor, "0x41");
  EXPECT_EQ(key.flags, "asimd asimdhp sve");
  read_cpu("nothing of that kind\n", key);
  EXPECT_EQ(key.vendor, "unknown");
  EXPECT_EQ(key.flags, "unknown");
}

TEST(GoldenKey, SaysWhatTellsMachinesApart) {
  const auto here = some_entry().key;
  EXPECT_EQ(difference(here, here), "");
  for (const auto& part : key_parts()) {
    auto there = here;
    there.*part.value = "other";
    EXPECT_NE(here, there);
    EXPECT_THAT(difference(here, there), HasSubstr(std::string(part.name)));
  }
  EXPECT_EQ(difference(here, some_entry("AVX512").key), "capability is AVX2, not AVX512");
  auto there = here;
  there.flags = "amx_int8 avx avx2";
  EXPECT_EQ(difference(here, there), "flags are those with fma, without amx_int8");
}

TEST(GoldenKey, ComesFromTheProgramThatKnowsLibTorch) {
  const TemporaryFolder folder;
  const Project project{.source = folder.path(), .build = folder.path()};
  const auto replay = folder.path() / "bin" / "replay";
  const auto say = [&](const std::string& script) {
    write_file(replay, "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(replay, std::filesystem::perms::owner_all);
  };
  say("echo 2.11.0 AVX2");
  const auto key = key_here(project);
  EXPECT_EQ(key.torch, "2.11.0");
  EXPECT_EQ(key.capability, "AVX2");
  EXPECT_THAT(key.glibc, ::testing::StartsWith("2."));
  say("echo usage: replay; exit 1");
  EXPECT_THAT(error_of([&] { key_here(project); }), HasSubstr("Fix: ./workbook build replay"));
}

TEST(GoldenRuns, FindLossesInWords) {
  EXPECT_THAT(losses_in(std::vector<std::string>{
                  "epoch 1/2: training loss 3.64620, validation loss 2.79473",
                  "best validation loss: 2.795 nats a word (perplexity 16.4; unigram 2.585)",
                  "a loss", "loss"}),
              ElementsAre(3.6462, 2.79473, 2.795));
}

TEST(GoldenAgainst, NeedsGit) {
  const TemporaryFolder folder;
  const Project project{.source = PROJECT_FOLDER, .build = folder.path()};
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", folder.path().c_str(), 1);
  const auto error = error_of([&] { OtherCommit(project, "HEAD"); });
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_THAT(error, HasSubstr("Cannot start git"));
  EXPECT_THAT(error, HasSubstr("Fix: sudo apt-get install git"));
}

TEST(GoldenAgainst, NamesACommitThatIsNotThere) {
  if (std::system("git --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no git here";
  const TemporaryFolder folder;
  const Project project{.source = PROJECT_FOLDER, .build = folder.path()};
  EXPECT_THAT(error_of([&] { OtherCommit(project, "no-such-commit"); }),
              ::testing::AllOf(HasSubstr("Unknown commit no-such-commit in "),
                               HasSubstr("git fetch brings more")));
  const Project no_repository{.source = "/proc", .build = folder.path()};
  EXPECT_THAT(error_of([&] { OtherCommit(no_repository, "HEAD"); }), HasSubstr("git"));
}

}  // namespace
}  // namespace checker::golden

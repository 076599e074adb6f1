// What is taken of a hand-in, from folders and archives that may hold anything.
#include "grade/gather.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "support/files.hpp"

namespace checker::grade {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;

const std::vector<GradedStep> kSteps{{"02_setup", {"train.cpp", "layers.hpp"}},
                                     {"05_all_reduce_loss", {"train.cpp"}},
                                     {"07_multi_node", {"train.cpp"}}};

class GatherTest : public ::testing::Test {
 protected:
  void add(const std::string& path, const std::string& text) {
    write_file(folder_.path() / path, text);
  }
  Gathered gather() const { return gather_folder(folder_.path().string(), kSteps); }
  fs::path operator/(const std::string& name) const { return folder_.path() / name; }

  TemporaryFolder folder_;
};

TEST_F(GatherTest, TakesTheStepsOfAWholeCloneAndNotItsSolutions) {
  add("clone/steps/02_setup/train.cpp", "mine");
  add("clone/solutions/02_setup/train.cpp", "not mine");
  add("clone/build/workshop/05_all_reduce_loss/train.cpp", "built");
  add("clone/sbatch/07_multi_node.sbatch", "job");
  add("clone/course-version", " 0.1.0-abc\n");
  const auto all = gather();
  EXPECT_THAT(all.steps, ElementsAre(Key("02_setup"), Key("07_multi_node")));
  EXPECT_EQ(all.steps.at("02_setup").program.at("train.cpp"), "mine");
  EXPECT_EQ(all.steps.at("07_multi_node").job, "job");
  EXPECT_EQ(all.version, "0.1.0-abc");
  EXPECT_THAT(all.remarks, IsEmpty());
}

TEST_F(GatherTest, TakesSingleFilesByTheNumberInTheirNames) {
  add("02.cpp", "two");
  add("deep/in/it/step_05.cpp", "five");
  add("07_multi_node.sbatch", "job");
  add("2023.cpp", "a year");
  add("readme.cpp", "nothing");
  const auto all = gather();
  EXPECT_EQ(all.steps.at("02_setup").program.at("train.cpp"), "two");
  EXPECT_EQ(all.steps.at("05_all_reduce_loss").program.at("train.cpp"), "five");
  EXPECT_EQ(all.steps.at("07_multi_node").job, "job");
  EXPECT_EQ(all.steps.size(), 3U);
}

TEST_F(GatherTest, OfSeveralTheOneThatLiesAsInTheCourseIsTakenAndTheOthersAreNamed) {
  add("old/02_setup.cpp", "old");
  add("steps/02_setup/train.cpp", "new");
  add("zzz/steps/02_setup/train.cpp", "copy");
  const auto all = gather();
  EXPECT_EQ(all.steps.at("02_setup").program.at("train.cpp"), "new");
  EXPECT_THAT(all.remarks, Contains(HasSubstr("old/02_setup.cpp was left out")));
  EXPECT_THAT(all.remarks, Contains(HasSubstr("zzz/steps/02_setup/train.cpp was left out")));
}

TEST_F(GatherTest, FollowsNoLinkAndWaitsForNoPipe) {
  add("secret", "of the instructor");
  fs::create_directories(*this / "steps/02_setup");
  fs::create_symlink(*this / "secret", *this / "steps/02_setup/train.cpp");
  fs::create_directories(*this / "steps/05_all_reduce_loss");
  ASSERT_EQ(::mkfifo((*this / "steps/05_all_reduce_loss/train.cpp").c_str(), 0644), 0);
  fs::create_directories(*this / "elsewhere/07_multi_node");
  add("elsewhere/07_multi_node/train.cpp", "linked");
  fs::create_directory_symlink(*this / "elsewhere", *this / "steps/linked");
  const auto all = gather();
  EXPECT_THAT(all.steps, ElementsAre(Key("07_multi_node")));
  EXPECT_THAT(all.remarks, Contains("steps/02_setup/train.cpp is a link, and was left out"));
  EXPECT_THAT(
      all.remarks,
      Contains("steps/05_all_reduce_loss/train.cpp is not a regular file, and was left out"));
}

TEST_F(GatherTest, LeavesOutWhatIsTooLargeForASource) {
  add("02.cpp", std::string(kLargestText + 1, ' '));
  const auto all = gather();
  EXPECT_THAT(all.steps, IsEmpty());
  EXPECT_THAT(all.remarks, ElementsAre("02.cpp is larger than 1 MiB"));
}

// One entry of an archive.
struct Entry {
  std::string path, text;
  mode_t type = AE_IFREG;
  std::string link = "";
};

void write_archive(const fs::path& file, int format, const std::vector<Entry>& entries) {
  auto* writer = archive_write_new();
  archive_write_set_format(writer, format);
  if (format != ARCHIVE_FORMAT_ZIP) archive_write_add_filter_gzip(writer);
  ASSERT_EQ(archive_write_open_filename(writer, file.c_str()), ARCHIVE_OK);
  for (const auto& one : entries) {
    auto* entry = archive_entry_new();
    archive_entry_set_pathname(entry, one.path.c_str());
    archive_entry_set_filetype(entry, one.type);
    archive_entry_set_perm(entry, 0644);
    if (one.type == AE_IFLNK) archive_entry_set_symlink(entry, one.link.c_str());
    if (one.type == AE_IFREG && !one.link.empty()) {
      archive_entry_set_hardlink(entry, one.link.c_str());
    }
    archive_entry_set_size(entry, static_cast<la_int64_t>(one.text.size()));
    EXPECT_EQ(archive_write_header(writer, entry), ARCHIVE_OK) << archive_error_string(writer);
    archive_write_data(writer, one.text.data(), one.text.size());
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
}

TEST_F(GatherTest, ReadsZipsAndTars) {
  const std::vector<Entry> entries{{"alice/steps/02_setup/train.cpp", "two"},
                                   {"alice/sbatch/07_multi_node.sbatch", "job"}};
  write_archive(*this / "a.zip", ARCHIVE_FORMAT_ZIP, entries);
  write_archive(*this / "a.tar.gz", ARCHIVE_FORMAT_TAR_PAX_RESTRICTED, entries);
  for (const char* name : {"a.zip", "a.tar.gz"}) {
    EXPECT_TRUE(is_archive(name));
    const auto all = gather_archive((*this / name).string(), kSteps);
    EXPECT_EQ(all.steps.at("02_setup").program.at("train.cpp"), "two") << name;
    EXPECT_EQ(all.steps.at("07_multi_node").job, "job") << name;
  }
}

TEST_F(GatherTest, PathsThatLeadOutOfAnArchiveLeadNowhere) {
  write_archive(*this / "a.tar.gz", ARCHIVE_FORMAT_TAR_PAX_RESTRICTED,
                {{"../../steps/02_setup/train.cpp", "up"},
                 {"/steps/05_all_reduce_loss/train.cpp", "absolute"},
                 {"steps/07_multi_node/train.cpp", "", AE_IFLNK, "/etc/passwd"},
                 {"07.cpp", "", AE_IFCHR},
                 {"07_multi_node.cpp", "", AE_IFREG, "/etc/passwd"}});
  const auto before = std::distance(fs::recursive_directory_iterator(folder_.path()), {});
  const auto all = gather_archive((*this / "a.tar.gz").string(), kSteps);
  EXPECT_EQ(std::distance(fs::recursive_directory_iterator(folder_.path()), {}), before);
  EXPECT_EQ(all.steps.at("02_setup").program.at("train.cpp"), "up");
  EXPECT_FALSE(all.steps.contains("07_multi_node"));
  EXPECT_THAT(all.remarks, Contains(HasSubstr("07_multi_node/train.cpp is not a regular file")));
}

TEST_F(GatherTest, WhatUnpacksWithoutEndIsBrokenOff) {
  const std::string zeros(100U << 20, '\0');
  write_archive(*this / "bomb.tar.gz", ARCHIVE_FORMAT_TAR_PAX_RESTRICTED,
                {{"a", zeros}, {"b", zeros}, {"c", zeros}});
  EXPECT_THAT([&] { gather_archive((*this / "bomb.tar.gz").string(), kSteps); },
              ::testing::ThrowsMessage<Unreadable>(HasSubstr("larger than 256 MiB")));
}

TEST_F(GatherTest, ADamagedArchiveIsUnreadable) {
  add("a.zip", "PK\x03\x04 and then nothing of the kind");
  EXPECT_THROW(gather_archive((*this / "a.zip").string(), kSteps), Unreadable);
  add("a.tar", "no archive");
  EXPECT_THROW(gather_archive((*this / "a.tar").string(), kSteps), Unreadable);
}

TEST_F(GatherTest, WhatWasWrittenIsFoundAgain) {
  Gathered all;
  all.steps["02_setup"].program["train.cpp"] = "two";
  all.steps["07_multi_node"].job = "job";
  write_gathered(all, folder_.path().string());
  const auto again = gather();
  EXPECT_EQ(again.steps.at("02_setup").program.at("train.cpp"), "two");
  EXPECT_EQ(again.steps.at("07_multi_node").job, "job");
}

}  // namespace
}  // namespace checker::grade

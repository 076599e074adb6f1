// Which rank left which file in a folder that all share, and who changed whose.
#include <gmock/gmock.h>

#include "evidence/files.hpp"
#include "evidence/folders.hpp"
#include "support/files.hpp"

namespace checker {
namespace {

using instrumentation::FileAction;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A world of three ranks, whose changes are told one after the other.
class SharedFiles : public ::testing::Test {
 protected:
  SharedFiles() {
    run_.world = 3;
    run_.ranks.resize(3);
    std::filesystem::create_directories(shared());
  }

  std::filesystem::path shared() const { return shared_folder_of(folder_.path()); }
  void leave(const std::string& file) const { write_file(shared() / file, "a model"); }
  void write(size_t rank, const std::string& file) { add(rank, FileAction::write, file); }
  void remove(size_t rank, const std::string& file) { add(rank, FileAction::remove, file); }
  void move(size_t rank, const std::string& file, const std::string& to) {
    add(rank, FileAction::move, file);
    run_.ranks[rank].file_changes.back().new_path = shared() / to;
  }
  std::vector<std::string> files_of(size_t rank) {
    tell_files(run_, folder_.path());
    std::vector<std::string> names;
    for (const auto& file : run_.ranks[rank].files) names.push_back(file.string());
    return names;
  }

  checker::Run run_;

 private:
  void add(size_t rank, FileAction action, const std::string& file) {
    run_.ranks[rank].file_changes.push_back({.action = action,
                                             .path = shared() / file,
                                             .new_path = {},
                                             .event = 0,
                                             .nanoseconds = ++time_});
  }

  TemporaryFolder folder_;
  uint64_t time_ = 0;
};

TEST_F(SharedFiles, BelongToWhoWroteThem) {
  write(0, "best");
  write(2, "mine");
  leave("best");
  leave("mine");
  leave("of a child process");
  EXPECT_THAT(files_of(0), ElementsAre("best", "of a child process"));
  EXPECT_THAT(files_of(1), IsEmpty());
  EXPECT_THAT(files_of(2), ElementsAre("mine"));
}

TEST_F(SharedFiles, ThatMovedBelongToTheWriterAndToTheMover) {
  write(0, "new");
  move(0, "new", "best");
  write(1, "draft");
  move(2, "draft", "copy");
  leave("best");
  leave("copy");
  EXPECT_THAT(files_of(0), ElementsAre("best"));
  EXPECT_THAT(files_of(1), ElementsAre("copy"));
  EXPECT_THAT(files_of(2), ElementsAre("copy"));
}

TEST_F(SharedFiles, InAFolderThatMovesBelongToTheirWriters) {
  write(0, ".new/list");
  write(1, ".new/part-1");
  write(2, ".newer");
  move(0, ".new", "best");
  leave("best/list");
  leave("best/part-1");
  leave(".newer");
  EXPECT_THAT(files_of(0), ElementsAre("best/list"));
  EXPECT_THAT(files_of(1), ElementsAre("best/part-1"));
  EXPECT_THAT(files_of(2), ElementsAre(".newer"));
}

TEST_F(SharedFiles, ThatTwoRanksWroteBelongToBothEvenWhenTheyAreGone) {
  write(0, "new");
  write(1, "new");
  move(0, "new", "best");
  leave("best");
  EXPECT_THAT(files_of(1), ElementsAre("best", "new"));
  EXPECT_THAT(files_of(2), IsEmpty());
}

TEST_F(SharedFiles, OfOneRankThatRemovesThemAreNobodys) {
  write(1, "lock");
  remove(1, "lock");
  EXPECT_THAT(files_of(1), IsEmpty());
  EXPECT_FALSE(first_foreign_change(run_));
}

TEST_F(SharedFiles, OfRankZeroAreNotForOthersToRemove) {
  remove(1, "best");  // left by an earlier run: nobody has written yet
  write(0, "best");
  EXPECT_FALSE(first_foreign_change(run_));
  remove(0, "best");
  remove(2, "best");
  const auto found = first_foreign_change(run_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 2U);
  EXPECT_EQ(found->change.action, FileAction::remove);
}

TEST_F(SharedFiles, OfRankZeroAreNotForOthersToRename) {
  write(0, "new");
  move(0, "new", "best");
  move(1, "best", "mine");
  const auto found = first_foreign_change(run_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 1U);
}

}  // namespace
}  // namespace checker

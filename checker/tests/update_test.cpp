#include "course/update.hpp"

#include <gmock/gmock.h>

#include "files.hpp"

namespace checker {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

const fs::path kStep = "steps/02_setup/train.cpp";

class UpdateTest : public ::testing::Test {
 protected:
  std::string content(const fs::path& file) const { return read_file(folder() / file); }
  void edit(const fs::path& file, const std::string& text) const {
    write_file(folder() / file, text);
  }
  const fs::path& folder() const { return folder_.path(); }

  const RenderedFiles old_{{kStep, "given\n"}, {"sbatch/02_setup.sbatch", "#!/bin/bash\n"}};
  const RenderedFiles new_{{kStep, "given, better\n"}, {"sbatch/02_setup.sbatch", "#!/bin/bash\n"}};

 private:
  TemporaryFolder folder_;
};

TEST_F(UpdateTest, WritesWhatIsMissingAndIsThenIdle) {
  EXPECT_THAT(update_files(old_, folder()).written, ElementsAre("sbatch/02_setup.sbatch", kStep));
  EXPECT_EQ(content(kStep), "given\n");
  const auto time = fs::last_write_time(folder() / kStep);
  EXPECT_THAT(update_files(old_, folder()).written, IsEmpty());
  EXPECT_EQ(fs::last_write_time(folder() / kStep), time) << "an equal file is not written again";
  EXPECT_THAT(find_differences(old_, folder()), IsEmpty());
}

TEST_F(UpdateTest, ReplacesAnOlderRenderingWithoutAsking) {
  update_files(old_, folder());
  const auto update = update_files(new_, folder());
  EXPECT_THAT(update.written, ElementsAre(kStep));
  EXPECT_THAT(update.kept, IsEmpty());
  EXPECT_FALSE(fs::exists(folder() / (kStep.string() + ".before-update")));
}

TEST_F(UpdateTest, KeepsAnEditBesideTheNewFile) {
  update_files(old_, folder());
  edit(kStep, "my work\n");
  const auto update = update_files(new_, folder());
  EXPECT_THAT(update.kept, ElementsAre(Pair(kStep, kStep.string() + ".before-update")));
  EXPECT_EQ(content(kStep), "given, better\n");
  EXPECT_EQ(content(kStep.string() + ".before-update"), "my work\n");
}

TEST_F(UpdateTest, KeepsEveryEditUnderAnotherName) {
  update_files(old_, folder());
  edit(kStep, "first\n");
  update_files(new_, folder());
  edit(kStep, "second\n");
  update_files(old_, folder());
  EXPECT_EQ(content(kStep.string() + ".before-update"), "first\n");
  EXPECT_EQ(content(kStep.string() + ".2.before-update"), "second\n");
}

TEST_F(UpdateTest, AFileOfUnknownOriginCountsAsAnEdit) {
  edit(kStep, "older than any note\n");
  EXPECT_THAT(update_files(old_, folder()).kept,
              ElementsAre(Pair(kStep, kStep.string() + ".before-update")));
}

TEST_F(UpdateTest, RemovesWhatLeftTheCourseButKeepsEditsOfIt) {
  auto more = old_;
  more["steps/08_gone/train.cpp"] = "gone\n";
  more["steps/09_gone/train.cpp"] = "gone\n";
  update_files(more, folder());
  edit("steps/09_gone/train.cpp", "my work\n");
  EXPECT_THAT(find_differences(old_, folder()),
              ElementsAre("steps/.rendered: differs",
                          "steps/08_gone/train.cpp: no longer part of the course",
                          "steps/09_gone/train.cpp: no longer part of the course"));
  const auto update = update_files(old_, folder());
  EXPECT_THAT(update.removed, ElementsAre("steps/08_gone/train.cpp", "steps/09_gone/train.cpp"));
  EXPECT_FALSE(fs::exists(folder() / "steps/08_gone/train.cpp"));
  EXPECT_EQ(content("steps/09_gone/train.cpp.before-update"), "my work\n");
}

TEST_F(UpdateTest, DifferencesAreListedAndNothingIsWritten) {
  EXPECT_THAT(find_differences(old_, folder()),
              ElementsAre("sbatch/02_setup.sbatch: missing", "steps/.rendered: missing",
                          kStep.string() + ": missing"));
  EXPECT_TRUE(fs::is_empty(folder()));
  update_files(old_, folder());
  edit(kStep, "edited\n");
  EXPECT_THAT(find_differences(old_, folder()), ElementsAre(kStep.string() + ": differs"));
  EXPECT_EQ(content(kStep), "edited\n");
}

}  // namespace
}  // namespace checker

// Archives and folders that reach for what lies outside of them, or hold more than they seem to.
// Each is shown to do its harm to who unpacks it without care.
#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "hostile/attack.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

struct Entry {
  std::string path, text;
  mode_t type = AE_IFREG;
  std::string link = "";  ///< where it leads; of a regular file: as a hard link
  size_t copies = 1;
};

struct HostileArchive {
  const char* name;
  std::vector<Entry> entries;
  const char* harm;  ///< a shell's test, true once it was unpacked without care
  int format = ARCHIVE_FORMAT_TAR_PAX_RESTRICTED;
};

void PrintTo(const HostileArchive& archive, std::ostream* out) { *out << archive.name; }

const std::string kZeros(4U << 20, '\0');

// INSTRUCTOR as in attack.hpp; unpacked in the folder "naive".
const HostileArchive kArchives[] = {
    {"LeadsUp", {{"../instructor/results.db", "1000 points"}}, "grep 1000 INSTRUCTOR/results.db"},
    {"LeadsAway", {{"INSTRUCTOR/results.db", "1000 points"}}, "grep 1000 INSTRUCTOR/results.db"},
    {"LinksToTheSolution",
     {{"steps/02_setup/train.cpp", "", AE_IFLNK, "INSTRUCTOR/solution"}},
     "grep answer steps/02_setup/train.cpp"},
    {"LinksHardToTheSolution",
     {{"steps/02_setup/train.cpp", "", AE_IFREG, "INSTRUCTOR/solution"}},
     "grep answer steps/02_setup/train.cpp"},
    {"WritesThroughALink",
     {{"steps/02_setup", "", AE_IFLNK, "INSTRUCTOR"}, {"steps/02_setup/results.db", "1000 points"}},
     "grep 1000 INSTRUCTOR/results.db"},
    {"HoldsADevice",
     {{"steps/02_setup/train.cpp", "", AE_IFCHR}},
     "test -c steps/02_setup/train.cpp"},
    {"HoldsAPipe",
     {{"steps/02_setup/train.cpp", "", AE_IFIFO}},
     "test -p steps/02_setup/train.cpp"},
    {"IsABombOfZeros",
     {{"zeros", kZeros, AE_IFREG, "", 80}},
     "test $(cat * | wc -c) -gt 300000000"},
    {"IsAZipOfZeros",
     {{"steps/02_setup/train.cpp", kZeros}},
     "test $(cat steps/02_setup/train.cpp | wc -c) -gt 4000000",
     ARCHIVE_FORMAT_ZIP},
    {"HoldsMoreFilesThanADiskHasRoomFor",
     {{"file", "", AE_IFREG, "", 100'001}},
     "test $(ls | wc -l) -gt 100000"},
    {"ChangesHowItIsBuilt",
     {{"CMakeLists.txt", "file(WRITE INSTRUCTOR/results.db \"1000 points\")\n"},
      {"checker/set_up.sh", "echo 1000 points > INSTRUCTOR/results.db\n"},
      {"build/bin/checker", "#!/bin/sh\necho 1000 points > INSTRUCTOR/results.db\n"}},
     "cmake -P CMakeLists.txt && grep 1000 INSTRUCTOR/results.db"},
};

void write_archive(const HostileArchive& what, const fs::path& file, const Instructor& instructor) {
  const std::unique_ptr<archive, decltype(&archive_write_free)> writer(archive_write_new(),
                                                                       archive_write_free);
  archive_write_set_format(writer.get(), what.format);
  if (what.format != ARCHIVE_FORMAT_ZIP) archive_write_add_filter_gzip(writer.get());
  ASSERT_EQ(archive_write_open_filename(writer.get(), file.c_str()), ARCHIVE_OK);
  for (const auto& one : what.entries) {
    const auto text = instructor.filled(one.text);
    for (size_t i = 0; i < one.copies; ++i) {
      const std::unique_ptr<archive_entry, decltype(&archive_entry_free)> entry(archive_entry_new(),
                                                                                archive_entry_free);
      const auto path = instructor.filled(one.path) + (i == 0 ? "" : std::to_string(i));
      archive_entry_set_pathname(entry.get(), path.c_str());
      archive_entry_set_filetype(entry.get(), one.type);
      archive_entry_set_perm(entry.get(), 0644);
      const auto link = instructor.filled(one.link);
      if (one.type == AE_IFLNK) archive_entry_set_symlink(entry.get(), link.c_str());
      if (one.type == AE_IFREG && !link.empty())
        archive_entry_set_hardlink(entry.get(), link.c_str());
      if (one.type == AE_IFCHR) archive_entry_set_rdev(entry.get(), makedev(1, 5));
      archive_entry_set_size(entry.get(), static_cast<la_int64_t>(text.size()));
      ASSERT_EQ(archive_write_header(writer.get(), entry.get()), ARCHIVE_OK)
          << archive_error_string(writer.get());
      archive_write_data(writer.get(), text.data(), text.size());
    }
  }
  ASSERT_EQ(archive_write_close(writer.get()), ARCHIVE_OK);
}

// In a process of its own, because it unpacks where it stands.
void unpack_without_care(const fs::path& file, const fs::path& folder) {
  fs::create_directories(folder);
  const pid_t unpacking = ::fork();
  if (unpacking == 0) {
    fs::current_path(folder);
    auto* reader = archive_read_new();
    archive_read_support_filter_all(reader);
    archive_read_support_format_all(reader);
    archive_read_open_filename(reader, file.c_str(), 1U << 16);
    archive_entry* entry = nullptr;
    while (archive_read_next_header(reader, &entry) == ARCHIVE_OK) {
      archive_read_extract(reader, entry, 0);
    }
    ::_exit(0);
  }
  ::waitpid(unpacking, nullptr, 0);
}

class HostileArchiveTest : public HostileTest,
                           public ::testing::WithParamInterface<HostileArchive> {};

TEST_P(HostileArchiveTest, DoesNoHarm) {
  const auto file = folder_.path() / "hand-in.tar.gz";
  {
    const Instructor victim(instructors());
    write_archive(GetParam(), file, victim);
    const auto naive = folder_.path() / "naive";
    unpack_without_care(file, naive);
    const auto harmed = "cd " + naive.string() + " && " + victim.filled(GetParam().harm);
    EXPECT_EQ(std::system((harmed + " >/dev/null").c_str()), 0) << "no attack at all";
    fs::remove_all(naive);
    fs::remove_all(instructors());
  }
  const Instructor instructor(instructors());
  const auto before = instructor.belongings();
  auto what = task();
  what.hand_in = file;
  what.archive = true;
  const auto said = judged(what);
  expect_no_points(said);
  EXPECT_THAT(said, Not(HasSubstr("answer")));
  EXPECT_EQ(instructor.belongings(), before);
}

INSTANTIATE_TEST_SUITE_P(All, HostileArchiveTest, ::testing::ValuesIn(kArchives),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace checker::testing

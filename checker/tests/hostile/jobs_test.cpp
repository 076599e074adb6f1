// Job scripts that look around. A lab and its jobs are shut in together.
#include "course/render.hpp"
#include "files.hpp"
#include "hostile/attack.hpp"
#include "lab/impossible.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

// Fails if it gets at anything.
constexpr const char* kLooksAround = R"sh(
if cat INSTRUCTOR/solution; then exit 71; fi
if ls PROJECT/solutions PROJECT/checker BUILD/bin/checker; then exit 72; fi
if kill -0 PROCESS; then exit 73; fi
if [ "$(id -u)" = 0 ] || touch /etc/harm /usr/harm; then exit 74; fi
if (exec 3<>/dev/tcp/127.0.0.1/PORT); then exit 75; fi
if [ -n "$COURSE_TOKEN" ]; then exit 76; fi
)sh";

class HostileJob : public HostileTest {};

TEST_F(HostileJob, SeesNothingButItsLab) {
  if (const auto why = lab_impossible()) GTEST_SKIP() << *why;
  const Instructor instructor(instructors());
  const auto looks = instructor.filled(kLooksAround);
  write_file(folder_.path() / "looks.sh", looks);
  EXPECT_EQ(run_program({"bash", (folder_.path() / "looks.sh").string()}).status, 71)
      << "no attack at all";

  const auto course = load_course(chapters_folder());
  auto job = render(course, testing::job_file(), course.step("07"), Rendering::solution);
  const std::string first = "set -eo pipefail\n";
  ASSERT_THAT(job, HasSubstr(first));
  job = replaced(std::move(job), first, first + looks);
  write_file(folder_.path() / "hand-in" / "07.sbatch", job);
  const auto before = instructor.belongings();
  auto what = task();
  what.memory = 6ULL << 30;
  what.building.processor_seconds = what.running.processor_seconds = 100;
  const auto said = judged(what);
  EXPECT_THAT(said, Not(HasSubstr("\"state\":\"wrong\"")));
  for (const int todo : {14, 15, 16, 17}) {
    EXPECT_THAT(said, HasSubstr("\"state\":\"done\",\"todo\":" + std::to_string(todo)));
  }
  EXPECT_EQ(instructor.belongings(), before);
  EXPECT_EQ(left_behind(), "");
}

}  // namespace
}  // namespace checker::testing

// Hand-ins that claim what they did not do: by how they end, what they print, what they leave, and
// by their own evidence.
#include "course/render.hpp"
#include "files.hpp"
#include "hostile/attack.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

struct Claim {
  const char* name;
  const char* code;  ///< of main()
  const char* seen;  ///< what a grader would fall for that only starts it and looks
  const char* before = "";
};

void PrintTo(const Claim& claim, std::ostream* out) { *out << claim.name; }

const Claim kClaims[] = {
    {"LeavesWithSuccess", "exit(0);", "exit 0"},
    {"LeavesBeforeMainBegins", "", "exit 0", "const struct Early { Early() { _exit(0); } } early;"},
    {"LeavesFromASignalsHandler", "signal(SIGALRM, [](int) { _exit(0); }); ualarm(1, 0); pause();",
     "exit 0"},
    {"LeavesFromAThread", "std::thread([] { quick_exit(0); }).join();", "exit 0"},
    {"TurnsACrashIntoSuccess", "signal(SIGSEGV, [](int) { _exit(0); }); raise(SIGSEGV);", "exit 0"},
    {"PrintsTheWorkersLines",
     R"(puts("{\"report\":{\"step\":\"02_setup\",\"verdicts\":[{\"todo\":1,\"state\":\"done\"}]}}");
        puts("{\"finished\":true}"); fputs("{\"finished\":true}\n", stderr);)",
     "{\"finished\":true}"},
    {"WritesIntoEveryDescriptor",
     R"(signal(SIGPIPE, SIG_IGN);
        for (int i = 0; i < 256; ++i) if (write(i, "{\"state\":\"done\"}\n", 17) < 0) continue;)",
     "{\"state\":\"done\"}"},
    {"MakesItsOutputSomeoneElses", R"(dup2(2, 1); dup2(1, 3); close(2); puts("TODO 1 done");)",
     "exit 0"},
    {"LeavesReports",
     R"(for (const char* name : {"report.json", "report.csv", "../report.json", "results.db"})
        std::ofstream(name) << "{\"state\":\"done\",\"points\":1000}"; puts("done");)",
     "done"},
    {"ShortensItsRecord",
     R"(if (const char* log = getenv("WORLDSIZE_RECORD")) truncate(log, 0);
        puts("0 bytes");)",
     "0 bytes"},
    {"WritesItsRecordFullOfNonsense",
     R"(if (const char* log = getenv("WORLDSIZE_RECORD")) {
          std::ofstream file(log, std::ios::in);
          for (int i = 0; i < 10000; ++i) file << "done done done "; } puts("done");)",
     "done"},
    {"SaysItsRecordIsEndless",
     R"(if (const char* log = getenv("WORLDSIZE_RECORD")) {
          std::fstream file(log, std::ios::in | std::ios::out); const unsigned long endless = ~0UL;
          file.seekp(128); file.write(reinterpret_cast<const char*>(&endless), 8); } puts("done");)",
     "done"},
    {"PutsSomethingElseForItsRecord",
     R"(if (const char* log = getenv("WORLDSIZE_RECORD")) {
          unlink(log); mkfifo(log, 0600); symlink("/dev/zero", log); } puts("done");)",
     "done"},
    {"PreloadsALibraryIntoItself",
     R"(if (getenv("LD_PRELOAD")) { puts("done"); return 0; }
        setenv("LD_PRELOAD", "./evil.so", 1); setenv("LD_LIBRARY_PATH", ".", 1);
        std::ofstream("evil.so") << "no library"; execl("/proc/self/exe", "train", nullptr);)",
     "done"},
};

constexpr const char* kProgram = R"(
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdio>
#include <fstream>
#include <thread>
#pragma clang diagnostic ignored "-Wunused-result"
%before
int main() { %code }
)";

class HostileClaim : public HostileTest, public ::testing::WithParamInterface<Claim> {};

TEST_P(HostileClaim, IsNotBelieved) {
  const auto text =
      replaced(replaced(kProgram, "%before", GetParam().before), "%code", GetParam().code);
  write_file(folder_.path() / "hand-in" / "02.cpp", text);
  auto what = task();
  what.programs = folder_.path() / "programs";
  fs::create_directories(what.programs);
  expect_no_points(judged(what));
  // The same program, by itself.
  for (const auto& entry : fs::directory_iterator(what.programs)) {
    if (entry.path().extension() == ".cpp") continue;
    const auto ran = run_program({"sh", "-c",
                                  "cd " + folder_.path().string() + " && timeout 20 " +
                                      entry.path().string() + "; echo exit $?"});
    EXPECT_THAT(ran.text, HasSubstr(GetParam().seen)) << "no claim at all";
    EXPECT_THAT(ran.text, HasSubstr("exit 0"));
    return;
  }
  FAIL() << "it was not built";
}

INSTANTIATE_TEST_SUITE_P(All, HostileClaim, ::testing::ValuesIn(kClaims),
                         [](const auto& info) { return std::string(info.param.name); });

class ForgedEvidence : public HostileTest {
 protected:
  // What comes of step 04 with these lines in place of its wrapper.
  std::string judged_with(const std::string& average) const {
    const auto course = load_course(chapters_folder());
    auto text = render(course, testing::trainer_file(), course.step("04"), Rendering::solution);
    text = replaced(std::move(text), "const auto model = DistributedDataParallel(module);",
                    "const auto model = module;");
    text = replaced(std::move(text), "loss.mean().backward();",
                    "loss.mean().backward();\n    average(model->parameters());");
    text = replaced(std::move(text), "namespace data = torch::data;",
                    "namespace data = torch::data;\n" + average);
    text.insert(
        0, "#include <fstream>\n#include <unistd.h>\n#include \"instrumentation/recording.hpp\"\n");
    write_file(folder_.path() / "hand-in" / "04.cpp", text);
    auto what = task();
    what.memory = 6ULL << 30;
    what.building.processor_seconds = what.running.processor_seconds = 100;
    what.worlds = {1, 2};
    return judged(what);
  }
};

constexpr const char* kHonest = R"(
void average(const std::vector<torch::Tensor>& parameters) {
  for (const auto& parameter : parameters) all_reduce(parameter.grad(), ReduceOp::AVG);
}
)";

// Records collectives that never were.
constexpr const char* kRecords = R"(
void claim(uint64_t elements) {
  namespace recording = instrumentation::recording;
  static uint64_t sequence = 1000;
  if (!recording::enabled()) return;
  const instrumentation::CollectiveRecord collective{
      .sequence = sequence, .elements = elements, .bytes = 8 * elements, .products = 0, .group = 0,
      .root = -1, .tag = -1, .frames = 0, .op_type = 1, .reduce_op = 1, .scalar_type = 7,
      .device = 0, .reserved = 0};
  recording::record_one(instrumentation::Kind::collective, collective);
  const instrumentation::CompletedRecord completed{
      .sequence = sequence++, .on_gpu = 0, .group = 0, .failed = 0};
  recording::record_one(instrumentation::Kind::completed, completed);
}
)";

// The right average, but over files and not over the network.
constexpr const char* kOverFiles = R"(
void average(const std::vector<torch::Tensor>& parameters) {
  static int64_t step = 0;
  std::vector<torch::Tensor> gradients;
  for (const auto& parameter : parameters) gradients.push_back(parameter.grad().flatten());
  const auto mine = torch::cat(gradients).contiguous();
  const auto place = [](int64_t of_step, int64_t rank) {
    return "/dev/shm/" + std::to_string(of_step) + "-" + std::to_string(rank);
  };
  const auto file = place(step, get_rank());
  std::ofstream(file + ".part").write(static_cast<const char*>(mine.data_ptr()), mine.nbytes());
  std::filesystem::rename(file + ".part", file);
  auto sum = torch::zeros_like(mine);
  for (int64_t rank = 0; rank < get_world_size(); ++rank) {
    while (!std::filesystem::exists(place(step, rank))) usleep(100);
    auto other = torch::empty_like(mine);
    std::ifstream(place(step, rank)).read(static_cast<char*>(other.data_ptr()), other.nbytes());
    sum += other;
  }
  sum /= get_world_size();
  int64_t offset = 0;
  for (const auto& parameter : parameters) {
    parameter.grad().copy_(sum.narrow(0, offset, parameter.numel()).view_as(parameter));
    offset += parameter.numel();
    claim(parameter.numel());
  }
  ++step;
}
)";

TEST_F(ForgedEvidence, WhatReallyPassesBetweenRanksIsBelieved) {
  const auto said = judged_with(kHonest);
  EXPECT_THAT(said, HasSubstr("\"state\":\"done\""));
  EXPECT_THAT(said, Not(HasSubstr("\"state\":\"wrong\"")));
}

TEST_F(ForgedEvidence, RightGradientsThatNoCollectiveAveragedAreNot) {
  const auto said = judged_with(std::string(kRecords) + kOverFiles);
  EXPECT_THAT(said, HasSubstr("nothing_passed_between_ranks"));
  EXPECT_EQ(left_behind(), "");
}

TEST_F(ForgedEvidence, RecordsOfCollectivesThatNeverWereAreNot) {
  const auto said = judged_with(std::string(kRecords) +
                                "void average(const std::vector<torch::Tensor>& parameters) {\n"
                                "  for (const auto& parameter : parameters) "
                                "claim(parameter.numel());\n}\n");
  EXPECT_THAT(said, HasSubstr("\"state\":\"wrong\""));
  EXPECT_THAT(said, Not(HasSubstr("\"todo\":8,\"state\":\"done\"")));
}

}  // namespace
}  // namespace checker::testing

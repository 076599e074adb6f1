#include "site/site.hpp"

#include <gmock/gmock.h>

#include "files.hpp"

namespace checker {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string error_in(const std::string& text) {
  return testing::error_of([&] { parse_site(text, "site.conf"); });
}

TEST(Site, ReadsKeysAndIgnoresComments) {
  const auto site = parse_site("# account = no\n\n account=abc \nmodules = GCC CUDA/13\n", "f");
  EXPECT_EQ(site, (Site{{"account", "abc"}, {"modules", "GCC CUDA/13"}}));
}

TEST(Site, ExportsWhatSbatchKnowsAndNothingElse) {
  const Site site{{"account", "it's"},
                  {"partition", "gpu"},
                  {"qos", ""},
                  {"modules", "CUDA"},
                  {"interface", "i"}};
  EXPECT_EQ(site_exports(site),
            "export SBATCH_ACCOUNT='it'\\''s'\nexport SBATCH_PARTITION='gpu'\n");
}

TEST(Site, AShellReadsTheExportsBack) {
  const std::string account = "a b'c$(touch x)\"";
  const auto lines = site_exports({{"account", account}});
  const auto back = testing::run_program({"sh", "-c", lines + "printf %s \"$SBATCH_ACCOUNT\""});
  EXPECT_EQ(back.text, account + "\n");
}

TEST(Site, RefusesResourcesSayingWhy) {
  for (const std::string key : {"gres", "nodes", "gpus", "time", "ntasks-per-node"}) {
    EXPECT_THAT(error_in("account = a\n" + key + " = 4\n"),
                ::testing::AllOf(StartsWith("site.conf:2: " + key + " cannot be set here"),
                                 HasSubstr("silently override")));
  }
}

TEST(Site, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(error_in("acount = x"),
              StartsWith("site.conf:1: unknown key acount. Did you mean 'account'?"));
  EXPECT_THAT(error_in("account"), StartsWith("site.conf:1: \"account\" is not key = value"));
  EXPECT_THAT(error_in("qos = a\nqos = b"), StartsWith("site.conf:2: qos appears twice"));
}

TEST(Site, TheProjectsFileIsValid) {
  const auto file = std::filesystem::path(PROJECT_FOLDER) / "sbatch" / "site.conf";
  EXPECT_NO_THROW(parse_site(read_file(file), "site.conf"));
}

}  // namespace
}  // namespace checker

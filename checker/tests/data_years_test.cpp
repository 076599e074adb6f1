// A set with a file for each year.
#include "data/manifest.hpp"
#include "data/years.hpp"
#include "data_fixture.hpp"

namespace checker {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class DataYearsTest : public testing::DataTest {
 protected:
  void SetUp() override {
    DataTest::SetUp();
    list("train", {"1990", "1991", "1992"});
    list("valid", {"2016", "2017"});
    list("test", {"2018"});
    server_.serve("/stats/global_means.npy", {.bytes = "means"});
    server_.serve("/stats/global_stds.npy", {.bytes = "deviations"});
  }

  // A page as Apache makes it, and the files that it lists.
  void list(const std::string& split, const std::vector<std::string>& years) {
    std::string page = "<a href=\"?C=N;O=D\">Name</a> <a href=\"/data/\">Parent Directory</a>\n";
    for (const auto& year : years) {
      page += "<img src=\"/icons/unknown.gif\"> <a href=\"" + year + ".h5\">" + year + ".h5</a>\n";
      server_.serve("/" + split + "/" + year + ".h5", {.bytes = "weather of " + year});
    }
    server_.serve("/" + split + "/", {.bytes = page});
  }

  std::vector<std::string> files() const { return data::files_below(folder()); }
};

TEST_F(DataYearsTest, TheChosenYearsComeWithOneToValidateAndOneToTest) {
  const auto fetched = fetch("era5", {"--years", "1990,1992"});
  EXPECT_EQ(fetched.status, 0) << fetched.text;
  EXPECT_THAT(files(),
              ElementsAre("manifest.sha256", "stats/global_means.npy", "stats/global_stds.npy",
                          "test/2018.h5", "train/1990.h5", "train/1992.h5", "valid/2016.h5"));
  EXPECT_EQ(read_file(folder() / "train/1992.h5"), "weather of 1992");
  EXPECT_THAT(fetched.text, AllOf(HasSubstr("The first download is trusted"),
                                  HasSubstr("--task weather --config bs16 --data ")));
  EXPECT_EQ(fetch("era5", {"--verify"}).status, 0);
}

TEST_F(DataYearsTest, MoreYearsAreAddedToThoseThatAreHere) {
  ASSERT_EQ(fetch("era5", {"--years", "1990"}).status, 0);
  server_.take_requests();
  const auto more = fetch("era5", {"--years", "1990-1991,2017"});
  EXPECT_EQ(more.status, 0) << more.text;
  EXPECT_THAT(server_.take_requests(),
              AllOf(Contains("GET /train/1991.h5"), Contains("GET /valid/2017.h5"),
                    Not(Contains("GET /train/1990.h5")), Not(Contains("HEAD /train/1990.h5"))));
  EXPECT_EQ(data::read_manifest(folder() / "manifest.sha256").size(), 7);
  EXPECT_THAT(fetch("era5", {"--years", "1991,2017"}).text,
              HasSubstr("Everything was fetched before."));
}

TEST_F(DataYearsTest, AYearThatNobodyHasIsRefusedBeforeAnythingIsFetched) {
  const auto refused = fetch("era5", {"--years", "1990,1979"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.text, HasSubstr("It has no 1979. Fix: choose from train 1990, 1991, 1992; "
                                      "valid 2016, 2017; test 2018."));
  EXPECT_THAT(server_.take_requests(), Not(Contains(HasSubstr(".h5"))));
  EXPECT_THAT(fetch("era5").text, HasSubstr("Which years? A year takes about 30 GB"));
}

TEST_F(DataYearsTest, ABreakCostsNoFileThatIsWhole) {
  const std::string weather(10'000, 'w');
  server_.serve("/train/1990.h5", {.bytes = weather});
  server_.have({.stop_at = 5000});
  EXPECT_EQ(fetch("era5", {"--years", "1990"}).status, 1);
  EXPECT_THAT(files(), Contains("manifest.sha256"));
  EXPECT_TRUE(fs::exists(folder() / ".part/train/1990.h5.part"));
  EXPECT_FALSE(fs::exists(folder() / "train/1990.h5"));
  server_.have({});
  server_.take_requests();
  EXPECT_EQ(fetch("era5", {"--years", "1990"}).status, 0);
  EXPECT_THAT(server_.take_requests(), AllOf(Contains("GET /train/1990.h5 from 5000"),
                                             Not(Contains("GET /stats/global_means.npy"))));
  EXPECT_EQ(read_file(folder() / "train/1990.h5"), weather);
}

TEST_F(DataYearsTest, ADamagedFileIsFetchedAgainAndMustBeTheSame) {
  ASSERT_EQ(fetch("era5", {"--years", "1990"}).status, 0);
  write_file(folder() / "train/1990.h5", "weather of 199O");
  EXPECT_THAT(fetch("era5", {"--verify"}).text, HasSubstr("  damaged: train/1990.h5\n"));
  fs::remove(folder() / "train/1990.h5");
  server_.serve("/train/1990.h5", {.bytes = "weather of then", .tag = "two"});
  const auto other = fetch("era5", {"--years", "1990"});
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.text, AllOf(HasSubstr("but in the first download it was"),
                                HasSubstr("take its line out of manifest.sha256")));
  server_.serve("/train/1990.h5", {.bytes = "weather of 1990", .tag = "three"});
  EXPECT_EQ(fetch("era5", {"--years", "1990"}).status, 0);
  EXPECT_EQ(fetch("era5", {"--verify"}).status, 0);
}

TEST_F(DataYearsTest, AFileThatSomebodyPutThereIsTakenIfItsSizeIsRight) {
  write_file(folder() / "train/1990.h5", "weather of 1990");
  write_file(folder() / "valid/2016.h5", "too short");
  const auto short_one = fetch("era5", {"--years", "1990"});
  EXPECT_THAT(short_one.text, HasSubstr("valid/2016.h5: It has 9 bytes, the server's file has 15"));
  EXPECT_EQ(read_file(folder() / "valid/2016.h5"), "too short");
  fs::remove(folder() / "valid/2016.h5");
  server_.take_requests();
  EXPECT_EQ(fetch("era5", {"--years", "1990"}).status, 0);
  EXPECT_THAT(server_.take_requests(), Not(Contains("GET /train/1990.h5")));
  EXPECT_EQ(fetch("era5", {"--verify"}).status, 0);
}

TEST_F(DataYearsTest, APageThatListsNothingIsSaid) {
  server_.serve("/valid/", {.bytes = "<html>Welcome</html>"});
  EXPECT_THAT(fetch("era5", {"--years", "1990"}).text,
              HasSubstr("/valid/: This page lists no files such as 1990.h5. Fix: "));
}

TEST_F(DataYearsTest, AManifestThatIsDamagedIsSaidWithItsLine) {
  write_file(folder() / "manifest.sha256", std::string(64, 'a') + "  x\nnonsense\n");
  EXPECT_THAT(fetch("era5", {"--verify"}).text,
              HasSubstr("manifest.sha256:2: This is not a line of sha256sum. Fix: "));
}

TEST(DataYears, ListsAndSpansAreRead) {
  EXPECT_THAT(data::parse_years("1993-1995,1990,1994"), ElementsAre(1990, 1993, 1994, 1995));
  for (const char* text : {"", "90", "1990-", "1990,x", "19901", "1990-19999"}) {
    EXPECT_THAT(testing::error_of([&] { data::parse_years(text); }), HasSubstr("1990,1993-1995"))
        << text;
  }
  EXPECT_THAT(data::years_listed("<A HREF=\"/a/train/2001.h5\"> <a href='x'> href=\"1999.h5\""),
              ElementsAre(1999, 2001));
  EXPECT_THAT(data::years_listed("href=\"notes.h5\" href=\"1999.nc\""), IsEmpty());
}

}  // namespace
}  // namespace checker

// A set of one archive, and what goes wrong on the way.
#include "data/curl.hpp"
#include "data/place.hpp"
#include "data_fixture.hpp"

namespace checker {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::DataArchiveTest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::HttpServer;
using ::testing::IsEmpty;

TEST_F(DataArchiveTest, ASetIsUnpackedWithItsHashesAndTheCommandThatTrains) {
  const auto first = fetch("imagewoof", {"--trust"});
  EXPECT_EQ(first.status, 0) << first.text;
  expect_complete();
  EXPECT_THAT(first.text, HasSubstr("holds 2 files, and their SHA-256 in manifest.sha256."));
  EXPECT_THAT(first.text, HasSubstr("./workbook run 06 --solution -- --task images --config seed "
                                    "--data '" +
                                    folder().string() + "'\n"));
  EXPECT_THAT(server_.take_requests(),
              ElementsAre("HEAD " + std::string(kArchive), "GET " + std::string(kArchive)));
  const auto sha256sum =
      testing::run_program({"sha256sum", "--check", "manifest.sha256"}, {}, folder());
  EXPECT_EQ(sha256sum.status, 0) << sha256sum.text;
  EXPECT_THAT(fetch("imagewoof").text, HasSubstr("was fetched before"));
  EXPECT_THAT(server_.take_requests(), IsEmpty());
}

TEST_F(DataArchiveTest, AfterABreakTheNextCallGoesOn) {
  server_.have({.stop_at = 60'000});
  const auto broken = fetch("imagewoof", {"--trust"});
  EXPECT_EQ(broken.status, 1);
  EXPECT_THAT(broken.text, HasSubstr("The server stopped after 60.0 kB of 100."));
  EXPECT_EQ(fs::file_size(part()), 60'000);
  server_.have({});
  server_.take_requests();
  const auto next = fetch("imagewoof", {"--trust"});
  EXPECT_EQ(next.status, 0) << next.text;
  EXPECT_THAT(next.text, HasSubstr("and 60.0 kB were fetched before"));
  EXPECT_THAT(server_.take_requests(), ElementsAre("HEAD " + std::string(kArchive),
                                                   "GET " + std::string(kArchive) + " from 60000"));
  expect_complete();
}

TEST_F(DataArchiveTest, AServerThatBreaksOffIsAskedAgainAtOnce) {
  server_.have({.at_once = 40'000});
  EXPECT_EQ(fetch("imagewoof", {"--trust"}).status, 0);
  const std::string get = "GET " + std::string(kArchive);
  EXPECT_THAT(server_.take_requests(), ElementsAre("HEAD " + std::string(kArchive), get,
                                                   get + " from 40000", get + " from 80000"));
  expect_complete();
}

TEST_F(DataArchiveTest, AServerWithoutRangesSendsAllAgain) {
  server_.have({.stop_at = 60'000});
  fetch("imagewoof", {"--trust"});
  server_.have({.no_ranges = true});
  EXPECT_EQ(fetch("imagewoof", {"--trust"}).status, 0);
  expect_complete();
}

TEST_F(DataArchiveTest, PartsOfTwoVersionsAreNeverJoined) {
  server_.serve(kArchive, {.bytes = std::string(bytes_.size(), 'x'), .tag = "old"});
  server_.have({.stop_at = 60'000});
  fetch("imagewoof", {"--trust"});
  server_.serve(kArchive, {.bytes = bytes_, .tag = "new"});
  server_.have({});
  const auto next = fetch("imagewoof", {"--trust"});
  EXPECT_EQ(next.status, 0) << next.text;
  expect_complete();
}

TEST_F(DataArchiveTest, AFullDiskLosesNothing) {
  // A limit on the size of files stands in for the disk.
  const auto full = fetch("imagewoof", {"--trust"}, "ulimit -f 64");
  EXPECT_EQ(full.status, 1);
  EXPECT_THAT(full.text, HasSubstr("The disk is full"));
  EXPECT_GT(fs::file_size(part()), 0);
  const auto next = fetch("imagewoof", {"--trust"});
  EXPECT_EQ(next.status, 0) << next.text;
  EXPECT_THAT(next.text, HasSubstr("were fetched before"));
  expect_complete();
}

TEST_F(DataArchiveTest, WithoutTheFileTheServerOrCurlTheFixIsSaid) {
  const auto missing =
      data({"imagewoof", "--from", server_.address() + "/old", "--into", folder().string()});
  EXPECT_THAT(missing.text,
              AllOf(HasSubstr("/old/imagewoof2-320.tgz: The server answered 404. Fix"),
                    HasSubstr("--from")));
  std::string nobody;
  {
    const HttpServer gone;
    nobody = gone.address();
  }
  const auto offline = data({"imagewoof", "--from", nobody, "--into", folder().string()});
  EXPECT_THAT(offline.text, HasSubstr("Cannot reach the server. Fix: on a cluster, run this "
                                      "on the login node"));
  EXPECT_THAT(fetch("imagewoof", {}, "PATH=/nowhere").text,
              HasSubstr("curl, which fetches the data, is missing. Fix: sudo apt-get install"));
}

TEST_F(DataArchiveTest, AKillBetweenTwoFoldersIsFixed) {
  ASSERT_EQ(fetch("imagewoof", {"--trust"}).status, 0);
  const auto unpacked = folder() / ".part/unpacked";
  fs::create_directories(unpacked);
  fs::rename(folder() / "val", unpacked / "val");
  fs::rename(folder() / "manifest.sha256", folder() / ".part/manifest.sha256");
  server_.take_requests();
  const auto next = fetch("imagewoof");
  EXPECT_EQ(next.status, 0) << next.text;
  expect_complete();
  EXPECT_THAT(server_.take_requests(), IsEmpty());
}

TEST_F(DataArchiveTest, AFolderOfThisMachineIsASourceToo) {
  write_file(scratch() / "usb/imagewoof2-320.tgz", bytes_);
  const auto fetched =
      data({"imagewoof", "--trust", "--from", "file://" + (scratch() / "usb").string(), "--into",
            folder().string()});
  EXPECT_EQ(fetched.status, 0) << fetched.text;
  expect_complete();
}

TEST_F(DataArchiveTest, VerifyNamesWhatIsDamagedOrMissing) {
  EXPECT_THAT(fetch("imagewoof", {"--verify"}).text, HasSubstr("There is no manifest.sha256"));
  ASSERT_EQ(fetch("imagewoof", {"--trust"}).status, 0);
  EXPECT_EQ(fetch("imagewoof", {"--verify"}).status, 0);
  write_file(folder() / "val/n02086240/b.JPEG", "smalI");
  fs::remove(folder() / "train/n02086240/a.JPEG");
  const auto verified = fetch("imagewoof", {"--verify"});
  EXPECT_EQ(verified.status, 1);
  EXPECT_THAT(verified.text, AllOf(HasSubstr("  missing: train/n02086240/a.JPEG\n"),
                                   HasSubstr("  damaged: val/n02086240/b.JPEG\n"),
                                   HasSubstr("1 file missing, 1 damaged. Fix: ")));
}

TEST(DataHeaders, TheLastAnswerCountsAndTheHubsHashIsFound) {
  const std::string hash(64, 'B');
  const auto remote = data::read_headers(
      "HTTP/2 302\r\ncontent-length: 99\r\netag: \"x\"\r\nX-Linked-ETag: \"" + hash +
          "\"\r\n\r\nHTTP/2 200\r\nContent-Length: 1234\r\nETag: W/\"y\"\r\n\r\n",
      "address");
  EXPECT_EQ(remote.size, 1234);
  EXPECT_EQ(remote.version, "y");
  EXPECT_EQ(remote.sha256, std::string(64, 'b'));
  EXPECT_THAT(testing::error_of([] { data::read_headers("HTTP/1.1 200 OK\r\n", "address"); }),
              HasSubstr("does not tell the size"));
}

TEST(DataVerb, WrongCommandLinesAreExplained) {
  const auto data = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {CHECKER_PROGRAM, "data"});
    return testing::run_program(arguments).text;
  };
  EXPECT_THAT(data({"imagewof"}),
              HasSubstr("Unknown data set: imagewof. Did you mean 'imagewoof'?"));
  EXPECT_THAT(data({"imagewoof", "xsum"}), HasSubstr("\"xsum\" is an extra argument"));
  EXPECT_THAT(data({"xsum", "--from", "--output"}), HasSubstr("--from must begin with"));
  EXPECT_THAT(data({"xsum", "--years", "1990"}), HasSubstr("--years is for era5 only."));
  EXPECT_THAT(data({}), AllOf(HasSubstr("imagewoof 12,954 pictures"), HasSubstr("xsum"),
                              HasSubstr("./workbook data era5 --years 1990,1991")));
}

TEST(DataSizes, AreSaidInThreeDigitsOrSo) {
  EXPECT_EQ(data::bytes_of(999), "999 bytes");
  EXPECT_EQ(data::bytes_of(254'582'292), "254.6 MB");
  EXPECT_EQ(data::bytes_of(999'960), "1.0 MB");
  EXPECT_EQ(data::bytes_of(30'274'560'000), "30.3 GB");
}

}  // namespace
}  // namespace checker

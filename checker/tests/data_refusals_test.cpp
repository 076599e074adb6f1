// What is not fetched, or fetched and not taken.
#include <cstdlib>

#include "data/get.hpp"
#include "data/place.hpp"
#include "data_fixture.hpp"
#include "pty.hpp"
#include "verbs/verbs.hpp"

namespace checker {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DataRefusals : public testing::DataArchiveTest {};

TEST_F(DataRefusals, AnotherHashThanThePublishedOneIsRefusedAndTheFileKept) {
  const auto refused = fetch("imagewoof");
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.text, AllOf(HasSubstr("but FastAI.jl publishes 4e4905ed"),
                                  HasSubstr("Fix: remove it"), HasSubstr("--trust")));
  EXPECT_FALSE(fs::exists(folder() / "train"));
  server_.take_requests();
  EXPECT_EQ(fetch("imagewoof", {"--trust"}).status, 0);
  expect_complete();
  EXPECT_THAT(server_.take_requests(), ElementsAre("HEAD " + std::string(kArchive)));
}

TEST_F(DataRefusals, AnArchiveThatWasTrustedOnceIsComparedAgain) {
  write_file(folder() / ".part/imagewoof2-320.tgz", bytes_);
  EXPECT_THAT(fetch("imagewoof").text, HasSubstr(".part/imagewoof2-320.tgz: Its SHA-256 is"));
  EXPECT_EQ(fetch("imagewoof", {"--trust"}).status, 0);
  expect_complete();
  EXPECT_THAT(server_.take_requests(), IsEmpty());
}

TEST_F(DataRefusals, ThePublishedHashIsAccepted) {
  ::setenv("no_proxy", "127.0.0.1", 1);  // NOLINT(concurrency-mt-unsafe)
  auto set = data::find_set("imagewoof");
  set.sources[0].sha256 = data::hash_file(scratch() / "archive.tgz");
  data::get(set, {.folder = folder(), .from = server_.address()});
  expect_complete();
}

TEST_F(DataRefusals, AHashThatTheServerSaysMustFit) {
  server_.serve(kArchive, {.bytes = bytes_, .tag = std::string(64, 'a')});
  const auto refused = fetch("imagewoof", {"--trust"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.text, HasSubstr("but the server says aaaa"));
}

TEST_F(DataRefusals, AFileOfAnotherSizeThanSaidIsRefused) {
  server_.serve(kArchive, {.bytes = bytes_, .head_size = bytes_.size() + 1});
  const auto refused = fetch("imagewoof", {"--trust"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.text, HasSubstr("bytes but announced " + std::to_string(bytes_.size() + 1)));
  EXPECT_FALSE(fs::exists(folder() / "train"));
}

TEST_F(DataRefusals, WhatDoesNotFitOnTheDiskIsNotBegun) {
  server_.serve(kArchive, {.bytes = bytes_, .head_size = 900'000'000'000'000'000});
  const auto refused = fetch("imagewoof", {"--yes"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.text,
              AllOf(HasSubstr("PB are needed. Fix: free some space"), HasSubstr("--into FOLDER")));
  EXPECT_THAT(server_.take_requests(), ElementsAre("HEAD " + std::string(kArchive)));
}

TEST_F(DataRefusals, MuchIsFetchedOnlyIfSomebodySaysYes) {
  server_.serve(kArchive, {.bytes = bytes_, .head_size = 1'000'000'001});
  const auto asked = fetch("imagewoof");
  EXPECT_EQ(asked.status, 1);
  EXPECT_THAT(asked.text, AllOf(HasSubstr("  fetch  1.0 GB\n"), HasSubstr("Fix: add --yes")));
  EXPECT_THAT(server_.take_requests(), ElementsAre("HEAD " + std::string(kArchive)));
}

TEST_F(DataRefusals, SomebodyAtATerminalIsAsked) {
  server_.serve(kArchive, {.bytes = bytes_, .head_size = 1'500'000'000});
  ::setenv("no_proxy", "127.0.0.1", 1);  // NOLINT(concurrency-mt-unsafe)
  testing::Terminal terminal(24, 200);
  terminal.run([&] {
    return dispatch(
        {"data", "imagewoof", "--from", server_.address(), "--into", folder().string()});
  });
  terminal.wait_for("Fetch 1.5 GB? [y/N] ");
  terminal.type("n\n");
  terminal.wait_for("Nothing was fetched");
  EXPECT_EQ(terminal.end(), 1);
  EXPECT_THAT(server_.take_requests(), ElementsAre("HEAD " + std::string(kArchive)));
}

TEST_F(DataRefusals, AFolderThatCannotBeOursIsRefused) {
  write_file(scratch() / "file", "");
  const auto file =
      data({"imagewoof", "--from", server_.address(), "--into", (scratch() / "file/x").string()});
  EXPECT_THAT(file.text, HasSubstr("Cannot write to it (Not a directory). Fix: choose"));
  write_file(folder() / "thesis.tex", "mine");
  EXPECT_THAT(fetch("imagewoof", {"--trust"}).text, HasSubstr("This folder has files"));
  EXPECT_EQ(read_file(folder() / "thesis.tex"), "mine");
  EXPECT_THAT(server_.take_requests(), IsEmpty());
}

TEST_F(DataRefusals, TwoNeverWorkInOneFolder) {
  const data::Place place(folder());
  EXPECT_THAT(fetch("imagewoof", {"--trust"}).text,
              HasSubstr("Another ./workbook data is using this folder"));
}

TEST_F(DataRefusals, LinksAndNamesThatLeadOutsideAreNeverWritten) {
  const auto outside = archive({}, {"-P", "--transform", "s,^top/val,../outside,"});
  server_.serve(kArchive, {.bytes = outside});
  EXPECT_THAT(fetch("imagewoof", {"--trust"}).text, HasSubstr("which may be outside the folder"));
  EXPECT_FALSE(fs::exists(folder() / "train"));
  EXPECT_FALSE(fs::exists(folder() / ".part/outside"));
  fs::remove_all(folder());
  fs::create_directory_symlink("/etc", scratch() / "top/link");
  server_.serve(kArchive, {.bytes = archive({})});
  EXPECT_THAT(fetch("imagewoof", {"--trust"}).text,
              HasSubstr("top/link is a link or a device, not a file"));
}

TEST_F(DataRefusals, ADamagedArchiveIsNamed) {
  server_.serve(kArchive, {.bytes = bytes_.substr(0, bytes_.size() / 2)});
  EXPECT_THAT(fetch("imagewoof", {"--trust"}).text, HasSubstr("imagewoof2-320.tgz: The archive is "
                                                              "damaged ("));
  EXPECT_FALSE(fs::exists(folder() / "train"));
}

}  // namespace
}  // namespace checker

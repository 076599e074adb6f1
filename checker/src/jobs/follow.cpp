#include "jobs/follow.hpp"

#include <fstream>

namespace checker {

namespace {

std::string with_meaning(const std::string& word) {
  const auto meaning = meaning_of(word);
  return meaning.empty() ? word : word + ": " + std::string(meaning);
}

std::string news_of(const JobRecord& job) {
  if (job.state == "PENDING") {
    return "waiting" + (job.reason.empty() ? "" : ", " + with_meaning(job.reason));
  }
  if (job.state == "CONFIGURING") return "its nodes are starting: " + job.nodes;
  if (job.state == "RUNNING") return "running on " + job.nodes;
  // On the way to its end; how it ended is said when it has.
  if (job.state == "COMPLETING") return "";
  if (job.state == "FAILED") return "FAILED, exit code " + job.exit_code;
  return with_meaning(job.state);
}

}  // namespace

void JobFollower::look(const JobRecord& now) {
  const auto news = news_of(now);
  const bool ends = now.is_over();
  // Its last words come before the news of its end, its first ones after that of its start.
  if (ends) read_on(now.output);
  if (!news.empty() && news != told_) {
    if (ends) lines_.finish();
    news_(told_ = news);
  }
  if (!ends) read_on(now.output);
}

void JobFollower::read_on(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(position_));
  std::string piece(64 * 1024, '\0');
  while (stream.read(piece.data(), static_cast<std::streamsize>(piece.size())) ||
         stream.gcount() > 0) {
    const auto got = static_cast<size_t>(stream.gcount());
    position_ += got;
    lines_.feed(std::string_view(piece).substr(0, got));
  }
}

}  // namespace checker

#include "data/curl.hpp"

#include <algorithm>
#include <cctype>
#include <csignal>
#include <regex>

#include "process/capture.hpp"
#include "process/ranks.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker::data {

namespace {

// curl's exit statuses (https://curl.se/docs/manpage.html#EXIT), where the fix differs.
enum Status {
  no_proxy_name = 5,
  no_host_name = 6,
  no_connection = 7,
  shorter_than_said = 18,
  http_error = 22,
  cannot_write = 23,
  out_of_time = 28,
  no_range = 33,
  no_such_file = 37,
  nothing_sent = 52,
  lost_connection = 56,
  certificate_unknown = 60,
  no_certificates = 77,
  stream_broken = 92
};

constexpr const char* kOtherServer =
    "name another server or folder with the same files: --from file:///FOLDER";

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// Without its quotes, and without the W/ of a weak tag.
std::string tag_of(const std::string& value) {
  auto text = value.starts_with("W/") ? value.substr(2) : value;
  std::erase(text, '"');
  return text;
}

bool is_sha256(const std::string& text) {
  return text.size() == 64 &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isxdigit(c) != 0; });
}

Command curl(const std::vector<std::string>& options, const std::string& address) {
  Command command;
  command.arguments = {"curl",    "--silent",         "--show-error",      "--fail", "--location",
                       "--proto", "=http,https,file", "--connect-timeout", "30"};
  command.arguments.insert(command.arguments.end(), options.begin(), options.end());
  command.arguments.push_back(address);
  return command;
}

// "curl: (22) The requested URL returned error: 404".
std::string http_status(const std::string& words) {
  std::smatch found;
  return std::regex_search(words, found, std::regex("returned error: (\\d+)")) ? found[1].str()
                                                                               : "an error";
}

std::string reason(int status, const std::string& words) {
  const std::string elsewhere = kOtherServer;
  switch (status) {
    case no_proxy_name:
    case no_host_name:
    case no_connection:
      return "Cannot reach the server. Fix: on a cluster, run this on the login node; behind a "
             "proxy, set https_proxy; " +
             elsewhere;
    case http_error:
      return "The server answered " + http_status(words) + ". Fix: try later; " + elsewhere;
    case no_such_file:
      return "The file does not exist there. Fix: " + elsewhere;
    case certificate_unknown:
    case no_certificates:
      return "Cannot check the server's certificate. Fix: sudo apt-get install ca-certificates, "
             "and check the clock (date)";
    case out_of_time:
      return "The server did not answer in time. Fix: run this again; " + elsewhere;
    default:
      return "curl failed with status " + std::to_string(status) + ". Fix: run this again; " +
             elsewhere;
  }
}

[[noreturn]] void fail(const std::string& address, int status, const std::string& words) {
  const auto said = std::string(trim(words));
  throw Error(address + ": " + reason(status, words) + "." +
              (said.empty() ? "" : " (" + said + ")"));
}

std::string answer(const std::vector<std::string>& options, const std::string& address) {
  const auto captured = capture(curl(options, address));
  if (captured.interrupted_by != 0) throw Error("Interrupted while asking " + address + ".");
  if (!captured.success()) {
    const auto at = captured.output.rfind("curl: ");
    fail(address, captured.status,
         at == std::string::npos ? std::string() : captured.output.substr(at));
  }
  return captured.output;
}

bool broke_off(int status) {
  return status == shorter_than_said || status == out_of_time || status == nothing_sent ||
         status == lost_connection || status == stream_broken;
}

}  // namespace

Remote read_headers(std::string_view headers, const std::string& address) {
  Remote remote;
  std::string size, linked_size, tag, modified, linked_tag;
  for (const auto& line : split_lines(headers)) {
    if (line.starts_with("HTTP/")) size = tag = modified = "";  // the answer after a redirection
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto name = lower(line.substr(0, colon));
    const std::string value(trim(std::string_view(line).substr(colon + 1)));
    if (name == "content-length") size = value;
    if (name == "etag") tag = tag_of(value);
    if (name == "last-modified") modified = value;
    // The Hugging Face hub tells a large file's size and SHA-256 where it sends us on.
    if (name == "x-linked-size") linked_size = value;
    if (name == "x-linked-etag") linked_tag = tag_of(value);
  }
  if (size.empty()) size = linked_size;
  if (size.empty() ||
      !std::ranges::all_of(size, [](unsigned char c) { return std::isdigit(c) != 0; })) {
    throw Error(address + ": The server does not tell the size of the file. Fix: " + kOtherServer +
                ".");
  }
  remote.size = std::stoull(size);
  remote.version = tag.empty() ? modified : tag;
  for (const auto& candidate : {tag, linked_tag}) {
    if (is_sha256(candidate)) remote.sha256 = lower(candidate);
  }
  return remote;
}

Remote ask(const std::string& address) {
  return read_headers(answer({"--head", "--max-time", "120"}, address), address);
}

std::string read_text(const std::string& address) { return answer({"--max-time", "120"}, address); }

Sent send_rest(const std::string& address, const std::filesystem::path& part,
               const std::function<void()>& tick) {
  // Below one byte a second for a minute: the server has stopped.
  const auto command = curl(
      {"--speed-limit", "1", "--speed-time", "60", "--continue-at", "-", "--output", part.string()},
      address);
  std::string words;
  RankOptions options;
  options.on_line = [&](size_t, bool, std::string_view line) {
    words.append(line).append("\n");
    return true;
  };
  options.stop = [&](size_t) {
    tick();
    return false;
  };
  const auto ended = run_ranks({&command, 1}, options);
  if (ended.interrupted_by != 0) {
    throw Error("Interrupted. Run the same command again: it continues.");
  }
  const auto& exit = ended.ranks[0].exit;
  if (exit.success()) return Sent::whole;
  if (broke_off(exit.code)) return Sent::part;
  if (exit.code == no_range) return Sent::no_ranges;
  if (exit.code == cannot_write || exit.signal == SIGXFSZ) {
    throw Error(
        part.string() +
        ": The disk is full, or files cannot be that large here (ulimit -f, quota). Fix: free some "
        "space and run the same command, which continues; or choose another disk: --into FOLDER.");
  }
  fail(address, exit.status(), words);
}

void expect_curl() {
  try {
    if (capture({{"curl", "--version"}, {}, {}}).success()) return;
  } catch (const Error&) {  // said below
  }
  throw Error(
      "The program curl, which fetches the data, is missing. Fix: sudo apt-get install curl; on a "
      "cluster: module load curl.");
}

}  // namespace checker::data

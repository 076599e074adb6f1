#pragma once
/// What servers say and send, fetched by the program curl (https://curl.se). Addresses may begin
/// with http, https, or file for what somebody carried here.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace checker::data {

/// What is known of a file before it is fetched.
struct Remote {
  uintmax_t size = 0;
  std::string version;  ///< another one once the file changed; empty if the server tells nothing
  std::string sha256;   ///< the file's, in small letters, if the server tells it
};

/// Reads what `curl --head` prints: the headers of one answer, or of several after redirections.
/// Throws Error if they do not tell the file's size.
Remote read_headers(std::string_view headers, const std::string& address);

/// Asks for a file's headers, without the file. Throws Error.
Remote ask(const std::string& address);

/// A short text, such as the list of a folder's files. Throws Error.
std::string read_text(const std::string& address);

enum class Sent {
  whole,
  part,       ///< the server stopped before the end
  no_ranges,  ///< it only sends from the start, and `part` holds something already
};

/// Adds what is missing of a file to `part`. Calls `tick` about every 50 ms. Throws Error if the
/// server or the disk refuses; what has come stays in `part`.
Sent send_rest(const std::string& address, const std::filesystem::path& part,
               const std::function<void()>& tick);

/// Throws Error if there is no curl.
void expect_curl();

}  // namespace checker::data

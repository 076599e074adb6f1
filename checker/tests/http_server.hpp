#pragma once
/// A web server on the loopback, with the faults that servers have.
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "process/descriptor.hpp"

namespace checker::testing {

class HttpServer {
 public:
  struct File {
    std::string bytes;
    std::string tag = "one";          ///< its ETag
    std::string more_headers;         ///< each with its end
    std::optional<size_t> head_size;  ///< what HEAD says, if not the truth
  };
  struct Faults {
    size_t stop_at = std::string::npos;  ///< sends nothing of a file from this byte on
    size_t at_once = std::string::npos;  ///< stops after so many bytes of an answer
    bool no_ranges = false;              ///< always sends all
  };

  HttpServer();
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// "http://127.0.0.1:40123"
  std::string address() const;
  void serve(const std::string& path, const File& file);
  void have(const Faults& faults);
  /// "HEAD /file", "GET /file", "GET /file from 100", and forgets them.
  std::vector<std::string> take_requests();

 private:
  void answer_all();
  std::string answer(const std::string& request);

  Descriptor socket_;
  std::mutex mutex_;
  std::map<std::string, File> files_;
  Faults faults_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

}  // namespace checker::testing

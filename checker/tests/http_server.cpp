#include "http_server.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <array>
#include <csignal>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace checker::testing {

namespace {

std::string read_request(int client) {
  std::string request;
  std::array<char, 4096> bytes{};
  while (request.find("\r\n\r\n") == std::string::npos) {
    const auto got = ::recv(client, bytes.data(), bytes.size(), 0);
    if (got <= 0) break;
    request.append(bytes.data(), static_cast<size_t>(got));
  }
  return request;
}

// The first byte that is asked for.
size_t first_byte(const std::string& request) {
  constexpr std::string_view range = "Range: bytes=";
  const auto at = request.find(range);
  return at == std::string::npos ? 0 : std::stoul(request.substr(at + range.size()));
}

void send_all(int client, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const auto sent = ::send(client, text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) return;
    at += static_cast<size_t>(sent);
  }
}

}  // namespace

HttpServer::HttpServer() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0 ||
      ::listen(socket_.get(), 16) != 0) {
    throw std::runtime_error("no server on the loopback");
  }
  // Signals are for the thread that runs programs: it waits for those of its children.
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { answer_all(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

HttpServer::~HttpServer() {
  ::shutdown(socket_.get(), SHUT_RDWR);  // accept() returns
  thread_.join();
}

std::string HttpServer::address() const {
  sockaddr_in place{};
  socklen_t size = sizeof place;
  ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&place), &size);
  return "http://127.0.0.1:" + std::to_string(ntohs(place.sin_port));
}

void HttpServer::serve(const std::string& path, const File& file) {
  const std::lock_guard lock(mutex_);
  files_[path] = file;
}

void HttpServer::have(const Faults& faults) {
  const std::lock_guard lock(mutex_);
  faults_ = faults;
}

std::vector<std::string> HttpServer::take_requests() {
  const std::lock_guard lock(mutex_);
  return std::exchange(requests_, {});
}

void HttpServer::answer_all() {
  while (true) {
    const Descriptor client(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client.is_open()) return;
    send_all(client.get(), answer(read_request(client.get())));
  }
}

std::string HttpServer::answer(const std::string& request) {
  const std::lock_guard lock(mutex_);
  std::istringstream words(request);
  std::string method, path;
  words >> method >> path;
  const size_t first = faults_.no_ranges ? 0 : first_byte(request);
  requests_.push_back(method + " " + path + (first > 0 ? " from " + std::to_string(first) : ""));
  const auto found = files_.find(path);
  if (found == files_.end()) return "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
  const auto& file = found->second;
  const bool is_head = method == "HEAD";
  const auto size = is_head && file.head_size ? *file.head_size : file.bytes.size() - first;
  std::string answer = first > 0 ? "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes " +
                                       std::to_string(first) + "-" +
                                       std::to_string(file.bytes.size() - 1) + "/" +
                                       std::to_string(file.bytes.size()) + "\r\n"
                                 : "HTTP/1.1 200 OK\r\n";
  answer += "Content-Length: " + std::to_string(size) + "\r\nETag: \"" + file.tag + "\"\r\n" +
            file.more_headers + "Connection: close\r\n\r\n";
  const auto end = std::min(faults_.stop_at, file.bytes.size());
  if (!is_head && first < end) {
    answer += file.bytes.substr(first, std::min(end - first, faults_.at_once));
  }
  return answer;
}

}  // namespace checker::testing

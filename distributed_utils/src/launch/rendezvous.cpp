#include "launch/rendezvous.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <functional>
#include <future>
#include <thread>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "distributed_utils/error.hpp"
#include "launch/unawaited.hpp"

namespace distributed_utils::detail {
namespace {

using Store = c10::intrusive_ptr<c10d::Store>;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Where a name cannot be looked up at the moment, it is tried again for this long.
constexpr milliseconds kLookUp{15'000};
// In this time a store that is there answers.
constexpr milliseconds kAnswer{10'000};

const std::vector<uint8_t> kMark{1};

std::string key_of(const std::string& what, int rank) { return what + "/" + std::to_string(rank); }

void expect_known(const std::string& host) {
  const auto end = steady_clock::now() + kLookUp;
  while (true) {
    addrinfo* found = nullptr;
    const int error = getaddrinfo(host.c_str(), nullptr, nullptr, &found);
    if (error == 0) return freeaddrinfo(found);
    if (error != EAI_AGAIN || steady_clock::now() >= end) {
      throw Error(
          fmt::format("MASTER_ADDR={}: this node does not know that host ({}). Fix: use the name "
                      "of rank 0's node as other nodes know it; under Slurm: scontrol show "
                      "hostnames \"$SLURM_JOB_NODELIST\".",
                      host, gai_strerror(error)));
    }
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

std::string first_line(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  return text.substr(0, text.find('\n'));
}

// 0 if anything listens there, else errno of the last attempt to connect.
int try_to_connect(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return EAGAIN;
  int error = EAGAIN;
  for (const addrinfo* one = found; one && error != 0; one = one->ai_next) {
    const int tried = socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol);
    error = tried >= 0 && connect(tried, one->ai_addr, one->ai_addrlen) == 0 ? 0 : errno;
    if (tried >= 0) close(tried);
  }
  freeaddrinfo(found);
  return error;
}

// Waits for a store that a thread makes, which may stay behind: if the program that listens is not
// a store, a TCPStore waits for its answer forever, whatever its time-out.
Store within(milliseconds timeout, const std::string& host, uint16_t port,
             const std::function<Store()>& make) {
  auto store = run_unawaited(make);
  const auto ready = [&] {
    return store.wait_for(std::min(kAnswer, timeout / 2)) == std::future_status::ready;
  };
  while (!ready()) {
    const int error = try_to_connect(host, port);
    if (error == ENETUNREACH || error == EADDRNOTAVAIL) {
      throw Error(
          fmt::format("this node has no route to {}:{} ({}). Fix: set MASTER_ADDR to an address in "
                      "a network that all nodes share. With IPv6 only, this node itself is ::1.",
                      host, port, std::strerror(error)));
    }
    if (error != 0 || ready()) continue;  // rank 0 may still come, until the time-out
    throw Error(
        fmt::format("the program that listens at {}:{} does not answer, so it is not rank 0 of "
                    "this job. Fix: choose another MASTER_PORT, derived from the job's id, and set "
                    "MASTER_ADDR to rank 0's node.",
                    host, port));
  }
  return store.get();
}

Store tcp_store(const std::string& host, uint16_t port, bool serve, milliseconds timeout) {
  expect_known(host);
  c10d::TCPStoreOptions options;
  options.port = port;
  options.isServer = serve;
  options.timeout = timeout;
  options.waitWorkers = false;  // who has come is seen below, by rank
  try {
    return within(timeout, host, port,
                  [=] { return c10::make_intrusive<c10d::TCPStore>(host, options); });
  } catch (const c10::Error& error) {
    const auto why = first_line(error);
    if (serve && why.find("in use") != std::string::npos) {
      throw Error(
          fmt::format("MASTER_PORT={}: another program on this node uses that port, perhaps a job "
                      "that is still ending. Fix: choose another port, derived from the job's id.",
                      port));
    }
    throw Error(
        fmt::format("rank 0 does not answer at {}:{}: {}. Fix: set MASTER_ADDR and MASTER_PORT to "
                    "rank 0's on all ranks, and read what rank 0 printed.",
                    host, port, why));
  }
}

Store environment_store(const Launch& launch, milliseconds timeout) {
  if (launch.master_addr.empty()) {
    throw Error(fmt::format(
        "WORLD_SIZE is {}, but MASTER_ADDR is not set, so the ranks cannot find each other. Fix: "
        "export MASTER_ADDR and MASTER_PORT of rank 0, or start through torchrun.",
        launch.world_size));
  }
  Store store = tcp_store(launch.master_addr, launch.master_port,
                          launch.rank == 0 && !launch.agent_store, timeout);
  if (!launch.agent_store) return store;
  // As Python's env:// does: a restarted group of workers must not read what the last one left.
  return c10::make_intrusive<c10d::PrefixStore>("/worker/attempt_" + launch.restart_count, store);
}

Store file_store(const std::string& init_method, const Launch& launch, milliseconds timeout) {
  const std::string path = init_method.substr(7);
  if (!path.starts_with('/')) {
    throw Error(fmt::format("INIT_METHOD='{}': expected file:///absolute/path.", init_method));
  }
  auto store = c10::make_intrusive<c10d::FileStore>(path, launch.world_size);
  store->setTimeout(timeout);
  return store;
}

Store store_at(const std::string& init_method, const Launch& launch, milliseconds timeout) {
  const size_t colon = init_method.rfind(':');
  uint16_t port = 0;
  const char* end = init_method.data() + init_method.size();
  const auto parsed = std::from_chars(init_method.data() + colon + 1, end, port);
  if (colon <= 6 || parsed.ec != std::errc() || parsed.ptr != end || port == 0) {
    throw Error(fmt::format("INIT_METHOD='{}': expected tcp://host:port.", init_method));
  }
  return tcp_store(init_method.substr(6, colon - 6), port, launch.rank == 0, timeout);
}

Rendezvous find(const std::string& init_method, const Launch& launch, milliseconds timeout) {
  if (init_method.starts_with("file://")) return {file_store(init_method, launch, timeout)};
  if (init_method.starts_with("tcp://")) return {store_at(init_method, launch, timeout), true};
  if (!init_method.empty() && init_method != "env://") {
    throw Error(fmt::format("INIT_METHOD='{}': expected env://, file:///path or tcp://host:port.",
                            init_method));
  }
  if (launch.world_size == 1) return {c10::make_intrusive<c10d::HashStore>()};
  return {environment_store(launch, timeout), !launch.agent_store};
}

void wait_for_all(c10d::Store& store, const Launch& launch, milliseconds timeout) {
  leave_mark(store, "arrived", launch.rank);
  if (store.add("arrivals", 1) == launch.world_size) store.set("all_arrived", kMark);
  try {
    store.wait({"all_arrived"}, timeout);
  } catch (const c10::Error&) {
    const auto missing = ranks_without_mark(store, "arrived", launch.world_size);
    if (missing.empty()) throw;
    throw Error(fmt::format(
        "of {} ranks, {} did not join within {} s. Fix: read what they printed, and check that "
        "WORLD_SIZE is the number of programs that were started.",
        launch.world_size, fmt::join(missing, ", "), static_cast<double>(timeout.count()) / 1000));
  }
}

}  // namespace

void leave_mark(c10d::Store& store, const std::string& what, int rank) {
  store.set(key_of(what, rank), kMark);
}

std::vector<int> ranks_without_mark(c10d::Store& store, const std::string& what, int world_size) {
  std::vector<int> missing;
  for (int rank = 0; rank < world_size; ++rank) {
    if (!store.check({key_of(what, rank)})) missing.push_back(rank);
  }
  return missing;
}

Rendezvous meet(const std::string& init_method, const Launch& launch, milliseconds timeout) {
  auto rendezvous = find(init_method, launch, timeout);
  if (launch.world_size > 1) wait_for_all(*rendezvous.store, launch, timeout);
  return rendezvous;
}

}  // namespace distributed_utils::detail

#include "distributed_utils/error.hpp"
#include "distributed_utils/launch.hpp"
#include "group/backend.hpp"

#ifndef DISTRIBUTED_UTILS_NO_GLOO
#include <ATen/record_function.h>
#include <gloo/context.h>

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#endif

namespace distributed_utils::detail {

#ifndef DISTRIBUTED_UTILS_NO_GLOO
bool has_gloo() { return true; }

namespace {

// c10d's own does nothing when it is told to abort.
class Gloo : public c10d::ProcessGroupGloo {
 public:
  using ProcessGroupGloo::ProcessGroupGloo;

  // Not exported from libtorch, so that sanitizers do not know them: the contexts' own types.
  __attribute__((no_sanitize("vptr"))) void abort() override {
    for (const auto& context : contexts_) context->closeConnections();
  }
};

// IPv4 where there is any.
std::shared_ptr<gloo::transport::Device> loopback() {
  try {
    return Gloo::createDeviceForHostname("127.0.0.1");
  } catch (const std::exception&) {
    return Gloo::createDeviceForHostname("::1");
  }
}

// A rank that leaves at once would otherwise break off the connections of one that still makes its
// own.
void wait_until_connected(Gloo& gloo) {
  const at::DisableRecordFunctionGuard no_call_of_the_program;
  gloo.barrier(c10d::BarrierOptions())->wait();
}

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_gloo(const BackendRequest& request) {
  auto options = Gloo::Options::create(request.timeout);
  // c10d has two threads by default, and after each collective they write its name into one string
  // without a lock (ProcessGroupGloo::runLoop, lastCompletedWorkName). Names from 16 letters on,
  // such as ALLGATHER_COALESCED, lie on the heap: two collectives that end at the same time free
  // the same memory, and the process aborts in malloc() later. The price: a callback of a future
  // must not wait for another collective of the group, which would wait behind it.
  options->threads = 1;
  if (const auto interfaces = process_environment("GLOO_SOCKET_IFNAME")) {
    for (size_t begin = 0; begin <= interfaces->size();) {
      const size_t end = std::min(interfaces->find(',', begin), interfaces->size());
      options->devices.push_back(
          Gloo::createDeviceForInterface(interfaces->substr(begin, end - begin)));
      begin = end + 1;
    }
  } else if (request.single_node) {
    // The default asks what the host name resolves to, which on laptops and in containers is often
    // nothing, or an address that a firewall guards.
    options->devices.push_back(loopback());
  } else {
    options->devices.push_back(Gloo::createDefaultDevice());
  }
  auto gloo = c10::make_intrusive<Gloo>(request.store, request.rank, request.size, options);
  wait_until_connected(*gloo);
  return gloo;
}
#else
bool has_gloo() { return false; }

c10::intrusive_ptr<c10d::Backend> make_gloo(const BackendRequest& /*request*/) {
  throw Error(
      "backend 'gloo': this library was built without gloo's headers, for NCCL only. Fix: apt-get "
      "install libgloo-dev and build again.");
}
#endif

}  // namespace distributed_utils::detail

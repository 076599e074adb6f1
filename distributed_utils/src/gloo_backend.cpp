#include "backend.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/launch.hpp"

#ifndef DISTRIBUTED_UTILS_NO_GLOO
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#endif

namespace distributed_utils::detail {

#ifndef DISTRIBUTED_UTILS_NO_GLOO
bool has_gloo() { return true; }

c10::intrusive_ptr<c10d::Backend> make_gloo(const BackendRequest& request) {
  using c10d::ProcessGroupGloo;
  auto options = ProcessGroupGloo::Options::create(request.timeout);
  if (const auto interfaces = process_environment("GLOO_SOCKET_IFNAME")) {
    for (size_t begin = 0; begin <= interfaces->size();) {
      const size_t end = std::min(interfaces->find(',', begin), interfaces->size());
      options->devices.push_back(
          ProcessGroupGloo::createDeviceForInterface(interfaces->substr(begin, end - begin)));
      begin = end + 1;
    }
  } else if (request.single_node) {
    // The default asks what the host name resolves to, which on laptops and in containers is often
    // nothing, or an address that a firewall guards.
    options->devices.push_back(ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  } else {
    options->devices.push_back(ProcessGroupGloo::createDefaultDevice());
  }
  return c10::make_intrusive<ProcessGroupGloo>(request.store, request.rank, request.size, options);
}
#else
bool has_gloo() { return false; }

c10::intrusive_ptr<c10d::Backend> make_gloo(const BackendRequest& /*request*/) {
  throw Error(
      "backend 'gloo': this library was built without gloo's headers, for NCCL only. Mend: apt-get "
      "install libgloo-dev and build again.");
}
#endif

}  // namespace distributed_utils::detail

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "backend.hpp"
#include "distributed_utils/launch.hpp"

namespace distributed_utils::detail {

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

}  // namespace distributed_utils::detail

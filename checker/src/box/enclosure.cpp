#include "box/enclosure.hpp"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "lab/isolation.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {

namespace {

void write_to_file(const char* file, const std::string& text) {
  if (!write_in_place(file, text)) throw Error(std::string("Cannot write ") + file + ".");
}

// Whoever is not root is, in a user namespace of his own, and may do there what follows.
void become_root_in_there() {
  const auto user = std::to_string(::geteuid()), group = std::to_string(::getegid());
  checked(::unshare(CLONE_NEWUSER), "make a user namespace");
  write_to_file("/proc/self/setgroups", "deny");
  write_to_file("/proc/self/uid_map", "0 " + user + " 1");
  write_to_file("/proc/self/gid_map", "0 " + group + " 1");
}

void raise_loopback() {
  const Descriptor any(checked(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "make a socket"));
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  checked(::ioctl(any.get(), SIOCGIFFLAGS, &request), "look at the loopback");
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  checked(::ioctl(any.get(), SIOCSIFFLAGS, &request), "bring up the loopback");
}

}  // namespace

void enclose(bool own_network) {
  if (::geteuid() != 0) become_root_in_there();
  checked(::unshare(CLONE_NEWNS | (own_network ? CLONE_NEWNET : 0)), "make namespaces");
  checked(separate_mounts(), "separate the mounts");
  if (own_network) raise_loopback();
}

LimitedFolder::LimitedFolder(std::filesystem::path folder, uint64_t bytes, uint64_t files)
    : folder_(std::move(folder)) {
  std::filesystem::create_directories(folder_);
  const auto options =
      "mode=755,size=" + std::to_string(bytes) + ",nr_inodes=" + std::to_string(files);
  checked(::mount("judgement", folder_.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()),
          "mount a file system in memory on " + folder_.string());
}

LimitedFolder::~LimitedFolder() { ::umount2(folder_.c_str(), MNT_DETACH); }

uint64_t loopback_bytes() {
  std::ifstream file("/proc/self/net/dev");
  for (std::string line; std::getline(file, line);) {
    const auto text = trim(line);
    if (!text.starts_with("lo:")) continue;
    return std::stoull(std::string(trim(text.substr(3))));  // the first number: received
  }
  return 0;
}

}  // namespace checker

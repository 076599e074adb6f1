#include "process/signals.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

namespace checker {

SignalWatch::SignalWatch() {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&watched, signal);
  ::sigprocmask(SIG_BLOCK, &watched, &mask_before_);
  descriptor_ = Descriptor(::signalfd(-1, &watched, SFD_NONBLOCK | SFD_CLOEXEC));
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &pipe_before_);
}

SignalWatch::~SignalWatch() {
  read([](int) {});  // what nobody read must not strike when the mask falls
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  ::sigaction(SIGPIPE, &pipe_before_, nullptr);
}

void SignalWatch::read(const std::function<void(int)>& on_signal) const {
  signalfd_siginfo info{};
  while (::read(descriptor_.get(), &info, sizeof info) == sizeof info) {
    on_signal(static_cast<int>(info.ssi_signo));
  }
}

}  // namespace checker

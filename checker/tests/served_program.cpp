// Does what its first argument says: as a program that serves, and when it is started.
#include <chrono>
#include <fstream>
#include <iostream>
#include <thread>

#include "process/served.hpp"

namespace {

int run(int count, char** words) {
  const std::string_view what = count > 1 ? words[1] : "";
  if (what == "speak") {
    std::cout << words[0];
    for (int i = 2; i < count; ++i) std::cout << " " << words[i];
    for (const char* name : {"FROM_BEFORE", "FROM_COMMAND"}) {
      const char* value = std::getenv(name);
      std::cout << " " << name << "=" << (value ? value : "-");
    }
    std::cout << std::endl;
    std::cerr << "and complains" << std::endl;
    std::atexit([] { std::printf("handled"); });
  }
  if (what == "stand") {
    char folder[4096];
    std::cout << (::getcwd(folder, sizeof folder) ? folder : "nowhere") << " "
              << (::getpgrp() == ::getpid() ? "leads" : "follows") << " "
              << (std::cin.get() == EOF ? "no input" : "input") << std::endl;
  }
  if (what == "write") {
    std::ofstream("large") << std::string(1 << 20, 'x') << std::flush;
  }
  if (what == "crash") std::abort();
  if (what == "wait") std::this_thread::sleep_for(std::chrono::hours(1));
  return what == "fail" ? 7 : 0;
}

}  // namespace

int main(int count, char** words) { return checker::run_or_serve(count, words, run); }

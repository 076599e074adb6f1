// Changes files in every way that the shim stands before, and prints what the shim tells.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>

extern "C" [[gnu::visibility("default")]] void instrumentation_file_changes(uint32_t action,
                                                                            const char* path,
                                                                            const char* new_path) {
  const char* const names[] = {"write", "move", "remove"};
  std::cout << names[action] << " " << path;
  if (new_path) std::cout << " " << new_path;
  std::cout << "\n";
}

int main(int, char** arguments) {
  namespace fs = std::filesystem;
  const fs::path folder = arguments[1];
  fs::current_path(folder);
  std::ofstream("stream") << "text";
  std::ofstream("stream", std::ios::app) << "more";
  std::ifstream("stream").get();
  std::fclose(std::fopen("c", "w"));
  std::fclose(std::fopen("c", "r+"));
  ::close(::open("posix", O_WRONLY | O_CREAT | O_TRUNC, 0644));
  ::close(::open("posix", O_RDONLY));
  ::close(::creat("created", 0600));
  const int here = ::open(".", O_RDONLY | O_DIRECTORY);
  ::close(::openat(here, "at", O_RDWR | O_CREAT, 0644));
  fs::copy_file("c", "copied");
  fs::resize_file("c", 3);
  fs::create_hard_link("c", "linked");
  fs::create_symlink("c", "symbolic");
  fs::rename("c", "renamed");
  ::renameat(here, "at", here, "moved");
  fs::remove("renamed");
  std::remove("linked");
  ::unlink("copied");
  ::unlinkat(here, "moved", 0);
  if (::access("posix", R_OK) != 0 || ::access("created", W_OK) != 0) return 1;
  return fs::file_size("stream") == 8 ? 0 : 1;
}

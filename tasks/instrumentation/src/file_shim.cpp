// A library to be preloaded: it stands before the C library's functions that change files, tells
// the instrumentation which file changes, and calls them. So a judge knows which of the ranks that
// share a folder wrote, moved or removed what. In a process without the instrumentation it tells
// nobody. What reaches the kernel by other ways is not seen.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <string>

#include "instrumentation/events.hpp"

// Null where the process has no instrumentation.
extern "C" [[gnu::weak]] void instrumentation_file_changes(uint32_t action, const char* path,
                                                           const char* new_path);

namespace {

using instrumentation::FileAction;

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

void tell(FileAction action, const char* path, const char* new_path = nullptr) {
  if (!instrumentation_file_changes || !path) return;
  const int error = errno;
  instrumentation_file_changes(static_cast<uint32_t>(action), path, new_path);
  errno = error;
}

// A path from an open folder, as remove_all() names what it removes.
std::string path_at(int folder, const char* path) {
  if (!path) return "";
  if (folder == AT_FDCWD || *path == '/') return path;
  std::array<char, PATH_MAX> name{};
  const auto link = "/proc/self/fd/" + std::to_string(folder);
  const auto size = ::readlink(link.c_str(), name.data(), name.size() - 1);
  return size < 0 ? path : std::string(name.data(), static_cast<size_t>(size)) + "/" + path;
}

// A file that is opened to be read and written, and may stay as it is, is not told of.
bool changes(int flags) {
  return (flags & O_ACCMODE) == O_WRONLY || (flags & (O_CREAT | O_TRUNC | O_APPEND)) != 0;
}

bool changes(const char* mode) { return mode && (*mode == 'w' || *mode == 'a'); }

void tell_open(int folder, const char* path, int flags) {
  if (changes(flags)) tell(FileAction::write, path_at(folder, path).c_str());
}

bool has_mode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

mode_t mode_of(int flags, va_list arguments) {
  return has_mode(flags) ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  tell_open(AT_FDCWD, path, flags);
  return next<int(const char*, int, ...)>("open")(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  tell_open(AT_FDCWD, path, flags);
  return next<int(const char*, int, ...)>("open64")(path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  tell_open(folder, path, flags);
  return next<int(int, const char*, int, ...)>("openat")(folder, path, flags, mode);
}

int openat64(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  tell_open(folder, path, flags);
  return next<int(int, const char*, int, ...)>("openat64")(folder, path, flags, mode);
}

int creat(const char* path, mode_t mode) {
  tell(FileAction::write, path);
  return next<int(const char*, mode_t)>("creat")(path, mode);
}

int creat64(const char* path, mode_t mode) {
  tell(FileAction::write, path);
  return next<int(const char*, mode_t)>("creat64")(path, mode);
}

FILE* fopen(const char* path, const char* mode) {
  if (changes(mode)) tell(FileAction::write, path);
  return next<FILE*(const char*, const char*)>("fopen")(path, mode);
}

FILE* fopen64(const char* path, const char* mode) {
  if (changes(mode)) tell(FileAction::write, path);
  return next<FILE*(const char*, const char*)>("fopen64")(path, mode);
}

int truncate(const char* path, off_t length) noexcept {
  tell(FileAction::write, path);
  return next<int(const char*, off_t)>("truncate")(path, length);
}

int truncate64(const char* path, off64_t length) noexcept {
  tell(FileAction::write, path);
  return next<int(const char*, off64_t)>("truncate64")(path, length);
}

int link(const char* path, const char* name) noexcept {
  tell(FileAction::write, name);
  return next<int(const char*, const char*)>("link")(path, name);
}

int symlink(const char* path, const char* name) noexcept {
  tell(FileAction::write, name);
  return next<int(const char*, const char*)>("symlink")(path, name);
}

int rename(const char* path, const char* new_path) noexcept {
  tell(FileAction::move, path, new_path);
  return next<int(const char*, const char*)>("rename")(path, new_path);
}

int renameat(int folder, const char* path, int new_folder, const char* new_path) noexcept {
  tell(FileAction::move, path_at(folder, path).c_str(), path_at(new_folder, new_path).c_str());
  return next<int(int, const char*, int, const char*)>("renameat")(folder, path, new_folder,
                                                                   new_path);
}

int renameat2(int folder, const char* path, int new_folder, const char* new_path,
              unsigned flags) noexcept {
  tell(FileAction::move, path_at(folder, path).c_str(), path_at(new_folder, new_path).c_str());
  return next<int(int, const char*, int, const char*, unsigned)>("renameat2")(
      folder, path, new_folder, new_path, flags);
}

int unlink(const char* path) noexcept {
  tell(FileAction::remove, path);
  return next<int(const char*)>("unlink")(path);
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  tell(FileAction::remove, path_at(folder, path).c_str());
  return next<int(int, const char*, int)>("unlinkat")(folder, path, flags);
}

int remove(const char* path) noexcept {
  tell(FileAction::remove, path);
  return next<int(const char*)>("remove")(path);
}

int rmdir(const char* path) noexcept {
  tell(FileAction::remove, path);
  return next<int(const char*)>("rmdir")(path);
}

}  // extern "C"

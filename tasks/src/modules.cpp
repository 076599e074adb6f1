// Tasks are modules, found by their names.
#include <dlfcn.h>
#include <fmt/format.h>

#include "tasks/registry.hpp"

namespace tasks {
namespace {

namespace fs = std::filesystem;

// The folder of the library that holds this function: modules lie below it wherever it lies.
fs::path own_folder() {
  Dl_info about{};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &about) == 0) return {};
  return fs::path(about.dli_fname).parent_path();
}

fs::path module_file(const std::string& name) { return own_folder() / "tasks" / (name + ".so"); }

// flags: more of dlopen's.
void* load(const std::string& name, int flags, const char* function) {
  const auto file = module_file(name);
  void* module = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | flags);
  if (module == nullptr) {
    throw Error(
        fmt::format("{}: cannot be loaded: {}", name, dlerror()));  // NOLINT(concurrency-mt-unsafe)
  }
  void* const found = dlsym(module, function);
  if (found == nullptr) {
    throw Error(
        fmt::format("{}: {} is not a task; delete it and build again", name, file.string()));
  }
  return found;
}

}  // namespace

Entry load_task(const std::string& name) {
  const auto file = module_file(name);
  if (!fs::exists(file)) {
    throw Error(fmt::format("{}: not built, {} does not exist. ./workbook build builds it.", name,
                            file.string()));
  }
  const auto fill = reinterpret_cast<void (*)(Entry&)>(load(name, 0, "worldsize_task"));
  Entry entry;
  fill(entry);
  return entry;
}

void* load_function(const std::string& module, const char* function) {
  return load(module, RTLD_DEEPBIND, function);
}

}  // namespace tasks

#pragma once
#include <filesystem>
#include <functional>

namespace tasks::weather {

/// Makes a folder unless it is there: `fill` fills another one beside it, which then gets its name.
/// So it is whole whenever it is there, though processes are killed. Of several processes that call
/// it one fills; the others wait for it. What a killed one left is removed. Throws Error if it
/// cannot be made.
void make_once(const std::filesystem::path& folder,
               const std::function<void(const std::filesystem::path&)>& fill);

}  // namespace tasks::weather

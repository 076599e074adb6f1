#pragma once
/// The files of a tar archive, one after the other.
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace checker::data {

/// The next bytes of a file; empty at its end.
using NextBytes = std::function<std::string_view()>;

/// Calls take() for each regular file. Throws Error that names the archive if it is damaged, and
/// for a name that leads out of it, a link or a device: nothing of these is ever written.
void for_each_file(const std::filesystem::path& archive,
                   const std::function<void(const std::string& name, const NextBytes& next)>& take);

}  // namespace checker::data

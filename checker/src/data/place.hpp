#pragma once
/// The folder that a data set is fetched into. What is not finished lies in its folder .part.
#include <cstdint>
#include <filesystem>
#include <string>

#include "process/descriptor.hpp"

namespace checker::data {

/// Where data sets lie if nobody names a folder: $WORLDSIZE_CACHE, else $XDG_CACHE_HOME/worldsize,
/// else ~/.cache/worldsize. Tasks keep their built-in data there, too. Throws Error if none is set.
std::filesystem::path cache_folder();

class Place {
 public:
  /// Makes the folder and takes it for this process. Throws Error if that is refused, or if another
  /// process is at work in it.
  explicit Place(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path unfinished() const { return folder_ / ".part"; }

  /// Whether anything but .part is in the folder.
  bool holds_something() const;

  /// Throws Error if the disk has not so many bytes free.
  void expect_space(uintmax_t bytes) const;

  /// Removes what is not finished. Nothing else may be done then.
  void clean_up();

 private:
  std::filesystem::path folder_;
  Descriptor lock_;
};

/// "812 bytes", "12.3 MB", "30.3 GB".
std::string bytes_of(uintmax_t bytes);

}  // namespace checker::data

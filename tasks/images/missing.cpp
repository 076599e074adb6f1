// What takes this task's place where CMake did not find what it needs.
#include "tasks/registry.hpp"

namespace tasks::images {

Entry entry();

Entry entry() {
  throw Error(
      "images: this build has no libjpeg-turbo, which reads JPEG files. Install it (sudo apt-get "
      "install libturbojpeg0-dev; on a cluster: module load libjpeg-turbo), delete "
      "build/*/CMakeCache.txt, then run ./workbook build.");
}

}  // namespace tasks::images

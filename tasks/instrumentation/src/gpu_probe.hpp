#pragma once
/// What NVIDIA's management library, NVML, says of GPUs. The driver brings it; it is loaded when it
/// is asked for, so that programs run where there is none.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "instrumentation/log.hpp"

namespace instrumentation {

class GpuProbe {
 public:
  struct Gpu {
    uint32_t number;   ///< among all of this machine's, as NVML counts them
    std::string name;  ///< "GPU-... NVIDIA H200": UUID and name
  };

  /// Those GPUs that `visible`, as CUDA_VISIBLE_DEVICES, names; all of them if it names none. No
  /// GPUs where the library is not there or says nothing.
  explicit GpuProbe(const std::optional<std::string>& visible,
                    const char* library = "libnvidia-ml.so.1");
  ~GpuProbe();
  GpuProbe(const GpuProbe&) = delete;
  GpuProbe& operator=(const GpuProbe&) = delete;

  const std::vector<Gpu>& gpus() const;
  /// Of each of gpus().
  std::vector<GpuSample> sample() const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace instrumentation

#include "gpu_probe.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>

#if __has_include(<nvml.h>)
#include <nvml.h>
#else
// What is needed of nvml.h, where no CUDA toolkit is
// (https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html).
extern "C" {
using nvmlReturn_t = int;
using nvmlClockType_t = int;
using nvmlTemperatureSensors_t = int;
struct nvmlDevice_st;
using nvmlDevice_t = nvmlDevice_st*;
struct nvmlUtilization_t {
  unsigned gpu, memory;
};
struct nvmlMemory_t {
  unsigned long long total, free, used;
};
constexpr nvmlReturn_t NVML_SUCCESS = 0;
constexpr nvmlClockType_t NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2;
constexpr nvmlTemperatureSensors_t NVML_TEMPERATURE_GPU = 0;
nvmlReturn_t nvmlInit_v2();
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned*);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned, nvmlDevice_t*);
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t, char*, unsigned);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t, char*, unsigned);
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t, nvmlUtilization_t*);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t, nvmlMemory_t*);
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t, unsigned*);
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t, nvmlClockType_t, unsigned*);
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t, nvmlTemperatureSensors_t, unsigned*);
}
#endif

namespace instrumentation {

struct GpuProbe::Library {
  explicit Library(const char* name) : handle(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
    if (handle == nullptr) return;
    whole = load(init, "nvmlInit_v2") && load(count, "nvmlDeviceGetCount_v2") &&
            load(by_index, "nvmlDeviceGetHandleByIndex_v2") && load(name_of, "nvmlDeviceGetName") &&
            load(uuid_of, "nvmlDeviceGetUUID") &&
            load(utilisation, "nvmlDeviceGetUtilizationRates") &&
            load(memory, "nvmlDeviceGetMemoryInfo") && load(power, "nvmlDeviceGetPowerUsage") &&
            load(clock, "nvmlDeviceGetClockInfo") && load(temperature, "nvmlDeviceGetTemperature");
  }

  template <class Function>
  bool load(Function& function, const char* symbol) {
    function = reinterpret_cast<Function>(dlsym(handle, symbol));
    return function != nullptr;
  }

  void* handle;  // never closed: NVML lives as long as the process
  bool whole = false;
  decltype(&nvmlInit_v2) init = nullptr;
  decltype(&nvmlDeviceGetCount_v2) count = nullptr;
  decltype(&nvmlDeviceGetHandleByIndex_v2) by_index = nullptr;
  decltype(&nvmlDeviceGetName) name_of = nullptr;
  decltype(&nvmlDeviceGetUUID) uuid_of = nullptr;
  decltype(&nvmlDeviceGetUtilizationRates) utilisation = nullptr;
  decltype(&nvmlDeviceGetMemoryInfo) memory = nullptr;
  decltype(&nvmlDeviceGetPowerUsage) power = nullptr;
  decltype(&nvmlDeviceGetClockInfo) clock = nullptr;
  decltype(&nvmlDeviceGetTemperature) temperature = nullptr;

  std::vector<Gpu> gpus;
  std::vector<nvmlDevice_t> devices;  // of gpus
};

namespace {

// Whether a list such as "0,2" or "GPU-8f6c,GPU-11aa" names this one; UUIDs may be cut short.
bool names_gpu(const std::string& visible, uint32_t number, const std::string& uuid) {
  for (size_t begin = 0; begin <= visible.size();) {
    const size_t end = std::min(visible.find(',', begin), visible.size());
    const auto entry = visible.substr(begin, end - begin);
    uint32_t value = 0;
    const auto [rest, failure] = std::from_chars(entry.data(), entry.data() + entry.size(), value);
    const bool is_number = failure == std::errc() && rest == entry.data() + entry.size();
    if (is_number ? value == number : !entry.empty() && uuid.starts_with(entry)) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

GpuProbe::GpuProbe(const std::optional<std::string>& visible, const char* library)
    : library_(std::make_unique<Library>(library)) {
  Library& nvml = *library_;
  unsigned count = 0;
  if (!nvml.whole || nvml.init() != NVML_SUCCESS || nvml.count(&count) != NVML_SUCCESS) return;
  for (unsigned number = 0; number < count; ++number) {
    nvmlDevice_t device{};
    char uuid[96] = {};
    char name[96] = {};
    if (nvml.by_index(number, &device) != NVML_SUCCESS ||
        nvml.uuid_of(device, uuid, sizeof uuid) != NVML_SUCCESS ||
        nvml.name_of(device, name, sizeof name) != NVML_SUCCESS ||
        (visible && !names_gpu(*visible, number, uuid))) {
      continue;
    }
    nvml.gpus.push_back({number, std::string(uuid) + " " + name});
    nvml.devices.push_back(device);
  }
}

GpuProbe::~GpuProbe() = default;

const std::vector<GpuProbe::Gpu>& GpuProbe::gpus() const { return library_->gpus; }

std::vector<GpuSample> GpuProbe::sample() const {
  const Library& nvml = *library_;
  std::vector<GpuSample> samples;
  for (size_t i = 0; i < nvml.gpus.size(); ++i) {
    const auto device = nvml.devices[i];
    const auto asked = [&](auto function, auto... arguments) {
      unsigned value = 0;
      return function(device, arguments..., &value) == NVML_SUCCESS ? value : kUnknown;
    };
    nvmlUtilization_t utilisation{};
    nvmlMemory_t memory{};
    const bool busy_known = nvml.utilisation(device, &utilisation) == NVML_SUCCESS;
    nvml.memory(device, &memory);
    samples.push_back({.used = memory.used,
                       .total = memory.total,
                       .number = nvml.gpus[i].number,
                       .utilisation = busy_known ? utilisation.gpu : kUnknown,
                       .milliwatts = asked(nvml.power),
                       .sm_clock = asked(nvml.clock, NVML_CLOCK_SM),
                       .memory_clock = asked(nvml.clock, NVML_CLOCK_MEM),
                       .celsius = asked(nvml.temperature, NVML_TEMPERATURE_GPU)});
  }
  return samples;
}

}  // namespace instrumentation

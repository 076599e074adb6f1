// Stands in for the driver's library: two GPUs, the second of which tells nothing of its power.
#include <cstdio>
#include <cstring>

extern "C" {

struct nvmlUtilization {
  unsigned gpu, memory;
};
struct nvmlMemory {
  unsigned long long total, free, used;
};

int nvmlInit_v2() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  static char devices[2];
  *device = &devices[index];
  devices[index] = static_cast<char>(index);
  return 0;
}
static unsigned index_of(const void* device) {
  return static_cast<unsigned>(*static_cast<const char*>(device));
}
int nvmlDeviceGetName(void*, char* name, unsigned size) {
  std::snprintf(name, size, "Fake GPU");
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* uuid, unsigned size) {
  std::snprintf(uuid, size, "GPU-%u%u", index_of(device), index_of(device));
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* device, nvmlUtilization* rates) {
  rates->gpu = 40 + index_of(device);
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, nvmlMemory* memory) {
  *memory = {1000, 300, 700};
  return 0;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  *milliwatts = 123'000;
  return index_of(device) == 0 ? 0 : 3;  // NVML_ERROR_NOT_SUPPORTED
}
int nvmlDeviceGetClockInfo(void*, int type, unsigned* clock) {
  *clock = type == 1 ? 1500 : 2500;
  return 0;
}
int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) {
  *celsius = 55;
  return 0;
}
}

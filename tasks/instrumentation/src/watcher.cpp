// What distributed_utils does, into the logs.
#include "watcher.hpp"

#include <atomic>
#include <string>
#include <utility>

#include "calls.hpp"
#include "distributed_utils/observer.hpp"
#include "instrumentation/monitoring.hpp"
#include "instrumentation/recording.hpp"
#include "recording_backend.hpp"

namespace instrumentation {
namespace {

class Watcher : public distributed_utils::Observer {
 public:
  std::function<BackendPtr(BackendPtr)> wrap_backends(
      const distributed_utils::GroupDescription& group) override {
    return [recorded = record_group(group.name, group.rank, group.size, group.ranks)](
               BackendPtr backend) { return wrap_recorded(std::move(backend), recorded); };
  }

  void setup_called(const distributed_utils::SetupDescription& asked) override {
    const std::string device = asked.device ? asked.device->str() : "";
    recording::record_text(Kind::setup, asked.backend + "\n" + device);
  }

  uint64_t sampler_made(const distributed_utils::SamplerDescription& sampler) override {
    const uint64_t number = samplers_.fetch_add(1);
    recording::record_one(Kind::sampler, SamplerRecord{.number = number,
                                                       .dataset_size = sampler.dataset_size,
                                                       .num_replicas = sampler.num_replicas,
                                                       .rank = sampler.rank,
                                                       .seed = sampler.seed,
                                                       .shuffle = sampler.shuffle,
                                                       .drop_last = sampler.drop_last,
                                                       .pad = sampler.pad});
    return number;
  }

  void epoch_set(uint64_t sampler, uint64_t epoch) override {
    const uint64_t set[] = {sampler, epoch};
    recording::record_one(Kind::set_epoch, set);
  }

  void print0_called(bool here) override {
    recording::record_one(Kind::printed, uint64_t{here ? 1U : 0U});
  }

  void save0_called(bool here) override {
    recording::record_one(Kind::saved, uint64_t{here ? 1U : 0U});
  }

  void forward_ended() override {
    if (recording::enabled()) recording::note_place();
  }

  void unit_event(const std::string& unit, distributed_utils::UnitEvent event) override {
    if (!recording::enabled()) return;
    const UnitRecord record{.event = static_cast<UnitRecord::Event>(event)};
    std::string payload(reinterpret_cast<const char*>(&record), sizeof record);
    recording::record_text(Kind::unit, payload.append(unit));
  }

 private:
  std::atomic<uint64_t> samplers_ = 0;
};

distributed_utils::Observer* watcher() {
  static auto* const instance = new Watcher;  // leaked: groups call it until the very end
  return recording::enabled() || monitoring::enabled() ? instance : nullptr;
}

}  // namespace

void watch_distributed_utils() { distributed_utils::observe(watcher); }

}  // namespace instrumentation

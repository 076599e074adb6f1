#pragma once
/// Which groups a rank makes, and which of them it shuts down.
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <utility>
#include <vector>

#include "distributed_utils/observer.hpp"

/// Says when it is shut down. It stands for the real backend, so no collective works.
class CountedBackend : public c10d::Backend {
 public:
  CountedBackend(c10::intrusive_ptr<c10d::Backend> backend, std::string name,
                 std::vector<std::string>& ended)
      : Backend(backend->getRank(), backend->getSize()),
        backend_(std::move(backend)),
        name_(std::move(name)),
        ended_(ended) {}
  const std::string getBackendName() const override { return backend_->getBackendName(); }
  void shutdown() override {
    ended_.push_back(name_);
    backend_->shutdown();
  }

 private:
  c10::intrusive_ptr<c10d::Backend> backend_;
  std::string name_;
  std::vector<std::string>& ended_;
};

class CountedGroups : public distributed_utils::Observer {
 public:
  std::function<BackendPtr(BackendPtr)> wrap_backends(
      const distributed_utils::GroupDescription& group) override {
    made.push_back(group.name);
    members.push_back(group.ranks);
    return [this, name = group.name](BackendPtr backend) {
      return c10::make_intrusive<CountedBackend>(std::move(backend), name, ended);
    };
  }

  std::vector<std::string> made, ended;   ///< names, in this order
  std::vector<std::vector<int>> members;  ///< of those made
};

/// The one of this process. To be given to observe().
inline CountedGroups& counted_groups() {
  static CountedGroups groups;
  return groups;
}
inline distributed_utils::Observer* find_counted_groups() { return &counted_groups(); }

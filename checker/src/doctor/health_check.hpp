#pragma once
#include <string>

namespace checker::doctor {

enum class Health {
  good,
  bad,     ///< has to be fixed
  absent,  ///< not here, which may be all right
};

/// One line of the report.
struct HealthCheck {
  std::string subject;  ///< "driver"
  Health health = Health::good;
  std::string found;  ///< "580.95.05"
  std::string fix{};  ///< an order; of what is bad, or of what is absent and may be wanted
};

}  // namespace checker::doctor

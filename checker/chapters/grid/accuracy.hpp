//@header
#pragma once
#include "distributed_utils/distributed_utils.hpp"

// Adds up the totals of all ranks: a sum and a count of the loss and of each metric.
inline void add_up(at::Tensor& totals) {
  //@todo 903
#if SUM_METRICS
  distributed_utils::all_reduce(totals);  //@sum
#else
  const auto loss = totals.slice(0, 0, 2).clone();
  distributed_utils::all_reduce(loss);
  totals.slice(0, 0, 2).copy_(loss);
#endif
}

// Evidence holds torch's numbers of collectives, operations and types. If a new torch counts
// differently, this does not compile.
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "evidence/collective_kinds.hpp"

namespace {

using checker::CollectiveKind;

constexpr bool same(c10d::OpType type, CollectiveKind kind) {
  return static_cast<int>(type) == static_cast<int>(kind);
}

static_assert(same(c10d::OpType::BROADCAST, CollectiveKind::broadcast));
static_assert(same(c10d::OpType::ALLREDUCE, CollectiveKind::all_reduce));
static_assert(same(c10d::OpType::ALLREDUCE_COALESCED, CollectiveKind::all_reduce_coalesced));
static_assert(same(c10d::OpType::REDUCE, CollectiveKind::reduce));
static_assert(same(c10d::OpType::ALLGATHER, CollectiveKind::all_gather));
static_assert(same(c10d::OpType::_ALLGATHER_BASE, CollectiveKind::all_gather_into_tensor));
static_assert(same(c10d::OpType::ALLGATHER_COALESCED, CollectiveKind::all_gather_coalesced));
static_assert(same(c10d::OpType::GATHER, CollectiveKind::gather));
static_assert(same(c10d::OpType::SCATTER, CollectiveKind::scatter));
static_assert(same(c10d::OpType::REDUCE_SCATTER, CollectiveKind::reduce_scatter));
static_assert(same(c10d::OpType::ALLTOALL_BASE, CollectiveKind::all_to_all_single));
static_assert(same(c10d::OpType::ALLTOALL, CollectiveKind::all_to_all));
static_assert(same(c10d::OpType::SEND, CollectiveKind::send));
static_assert(same(c10d::OpType::RECV, CollectiveKind::recv));
static_assert(same(c10d::OpType::RECVANYSOURCE, CollectiveKind::recv_any_source));
static_assert(same(c10d::OpType::BARRIER, CollectiveKind::barrier));
static_assert(same(c10d::OpType::_REDUCE_SCATTER_BASE, CollectiveKind::reduce_scatter_tensor));
static_assert(same(c10d::OpType::COALESCED, CollectiveKind::coalesced));
static_assert(same(c10d::OpType::_ALLREDUCE_SPARSE, CollectiveKind::all_reduce_sparse));

static_assert(checker::kReduceOpNames.at(c10d::ReduceOp::SUM) == "SUM");
static_assert(checker::kReduceOpNames.at(c10d::ReduceOp::AVG) == "AVG");
static_assert(checker::kReduceOpNames.at(c10d::ReduceOp::PRODUCT) == "PRODUCT");
static_assert(checker::kReduceOpNames.at(c10d::ReduceOp::MIN) == "MIN");
static_assert(checker::kReduceOpNames.at(c10d::ReduceOp::MAX) == "MAX");

constexpr bool called(at::ScalarType type, std::string_view name) {
  return checker::element_name(static_cast<int8_t>(type)) == name;
}

static_assert(called(at::kByte, "uint8") && called(at::kInt, "int32") &&
              called(at::kLong, "int64"));
static_assert(called(at::kHalf, "float16") && called(at::kFloat, "float32") &&
              called(at::kDouble, "float64") && called(at::kBool, "bool") &&
              called(at::kBFloat16, "bfloat16"));

}  // namespace

#include "comm/ordered_reduce.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace tessera {
namespace {

using c10d::ReduceOp;

at::Tensor reduce(const std::vector<at::Tensor>& tensors, ReduceOp::RedOpType op, const std::vector<int>& nodes) {
  at::Tensor output = at::empty_like(tensors.front());
  std::vector<const void*> sources;
  for (const at::Tensor& tensor : tensors) sources.push_back(tensor.data_ptr());
  ordered_reduce(output.scalar_type(), op, ReduceOrder::by_node(nodes), sources, output.data_ptr(), output.numel());
  return output;
}

std::vector<at::Tensor> random_tensors(int count, std::int64_t numel, at::ScalarType type) {
  std::vector<at::Tensor> tensors;
  for (int i = 0; i < count; ++i) tensors.push_back((at::randn({numel}) * 3).to(type));
  return tensors;
}

TEST(OrderedReduce, AddsWithinNodesByRankThenAcrossNodes) {
  const auto t = random_tensors(4, 5000, at::kFloat);
  const at::Tensor expected = (t[0] + t[1]) + (t[2] + t[3]);
  EXPECT_TRUE(at::equal(reduce(t, ReduceOp::SUM, {0, 0, 1, 1}), expected));
  EXPECT_TRUE(at::equal(reduce(t, ReduceOp::SUM, {0, 0, 0, 0}), ((t[0] + t[1]) + t[2]) + t[3]));
  EXPECT_FALSE(at::equal(reduce(t, ReduceOp::SUM, {0, 0, 0, 0}), expected)) << "the order does not show in this data";
}

TEST(OrderedReduce, TakesMembersOfANodeTogetherWhateverTheirRanks) {
  const auto t = random_tensors(4, 300, at::kFloat);
  EXPECT_TRUE(at::equal(reduce(t, ReduceOp::SUM, {0, 1, 0, 1}), (t[0] + t[2]) + (t[1] + t[3])));
}

TEST(OrderedReduce, TwoStepsGiveTheBitsOfOneFlatReductionInEveryType) {
  for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16}) {
    const auto t = random_tensors(6, 4097, type);
    const at::Tensor flat = reduce(t, ReduceOp::SUM, {0, 0, 0, 1, 1, 1});
    const at::Tensor node0 = reduce({t[0], t[1], t[2]}, ReduceOp::SUM, {0, 0, 0});
    const at::Tensor node1 = reduce({t[3], t[4], t[5]}, ReduceOp::SUM, {1, 1, 1});
    EXPECT_TRUE(at::equal(flat, reduce({node0, node1}, ReduceOp::SUM, {0, 1}))) << type;
  }
}

TEST(OrderedReduce, AddsHalfTypesInFloatAndRoundsOnce) {
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16}) {
    const auto t = random_tensors(3, 1000, type);
    const at::Tensor sum = (t[0].to(at::kFloat) + t[1].to(at::kFloat)) + t[2].to(at::kFloat);
    EXPECT_TRUE(at::equal(reduce(t, ReduceOp::SUM, {0, 0, 0}), sum.to(type))) << type;
    EXPECT_TRUE(at::equal(reduce(t, ReduceOp::AVG, {0, 0, 0}), (sum / 3).to(type))) << type;
  }
}

TEST(OrderedReduce, FindsLargestAndSmallestAndKeepsNaN) {
  auto t = random_tensors(3, 100, at::kFloat);
  t[1][7] = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor largest = at::maximum(at::maximum(t[0], t[1]), t[2]);
  const at::Tensor smallest = at::minimum(at::minimum(t[0], t[1]), t[2]);
  EXPECT_TRUE(at::allclose(reduce(t, ReduceOp::MAX, {0, 0, 1}), largest, 0, 0, /*equal_nan=*/true));
  EXPECT_TRUE(at::allclose(reduce(t, ReduceOp::MIN, {0, 0, 1}), smallest, 0, 0, /*equal_nan=*/true));
  const at::Tensor ints = at::arange(10, at::kLong);
  EXPECT_TRUE(at::equal(reduce({ints, 9 - ints}, ReduceOp::MAX, {0, 0}), at::maximum(ints, 9 - ints)));
  EXPECT_TRUE(at::equal(reduce({ints, 9 - ints}, ReduceOp::MIN, {0, 0}), at::minimum(ints, 9 - ints)));
}

TEST(OrderedReduce, MayWriteOverOneOfItsSources) {
  auto t = random_tensors(3, 9999, at::kFloat);
  const at::Tensor expected = (t[0] + t[1]) + t[2];
  std::vector<const void*> sources{t[0].data_ptr(), t[1].data_ptr(), t[2].data_ptr()};
  ordered_reduce(at::kFloat, ReduceOp::SUM, ReduceOrder::by_node({0, 0, 0}), sources, t[1].data_ptr(), 9999);
  EXPECT_TRUE(at::equal(t[1], expected));
}

TEST(OrderedReduce, RefusesWhatItCannotReduce) {
  EXPECT_THROW(check_reducible(at::kDouble, ReduceOp::SUM), Error);
  EXPECT_THROW(check_reducible(at::kFloat, ReduceOp::PRODUCT), Error);
  EXPECT_THROW(check_reducible(at::kInt, ReduceOp::AVG), Error);
  EXPECT_NO_THROW(check_reducible(at::kByte, ReduceOp::MAX));
}

}  // namespace
}  // namespace tessera

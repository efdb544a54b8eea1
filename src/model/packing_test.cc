#include "model/packing.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "support/contains.h"

namespace tessera {
namespace {

at::Tensor ids(std::vector<std::int64_t> values, std::int64_t rows) {
  return at::tensor(values, at::kLong).view({rows, -1});
}

template <typename Function>
std::string refusal(const Function& function) {
  try {
    function();
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Packing, LeavesOutPaddingOfEitherSideAndShiftsLabels) {
  const PackedBatch batch = pack_padded(ids({0, 0, 5, 6, 7, 8, 9, 0}, 2), ids({0, 0, 1, 1, 1, 1, 1, 0}, 2),
                                        ids({-100, -100, 5, 6, 7, -100, 9, 3}, 2));
  EXPECT_TRUE(at::equal(batch.input_ids, at::tensor({5, 6, 7, 8, 9}, at::kLong)));
  EXPECT_TRUE(at::equal(batch.positions, at::tensor({0, 1, 0, 1, 2}, at::kLong)));
  EXPECT_TRUE(at::equal(batch.targets, at::tensor({6, -100, -100, 9, 3}, at::kLong)));
  EXPECT_TRUE(at::equal(batch.cu_seqlens, at::tensor({0, 2, 5}, at::kInt)));
  EXPECT_EQ(batch.max_seqlen, 3);
  EXPECT_EQ(batch.num_counted, 3);
}

TEST(Packing, RefusesEmptyRowsAndHoles) {
  EXPECT_TRUE(contains(refusal([] { pack_padded(ids({1, 2}, 1), ids({0, 0}, 1)); }), "row 0 has no real"));
  EXPECT_TRUE(contains(refusal([] {
                         pack_padded(ids({1, 2, 3}, 1), ids({1, 0, 1}, 1));
                       }),
                       "row 0 has padding between"));
  EXPECT_TRUE(contains(refusal([] { pack_padded(ids({1, 2, 3}, 1), ids({1, 0}, 1)); }), "must all be [B, S]"));
  EXPECT_TRUE(contains(refusal([] { pack_sequences({{1}, {}}, at::kCPU); }), "sequence 1 is empty"));
  EXPECT_TRUE(contains(refusal([] { pack_sequences({}, at::kCPU); }), "no sequences"));
}

}  // namespace
}  // namespace tessera

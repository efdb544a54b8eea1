#include "kernels/gated_block.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "kernels/kernel_checks.h"

namespace tessera::kernels {
namespace {

TEST(GatedBlock, IsAsExactAsItsSingleOperators) {
  for (const auto type : {at::kFloat, at::kBFloat16}) check_gated_blocks(type, at::kCPU);
}

GatedBlock small_block() {
  GatedBlock block;
  block.query.weight = block.output.weight = at::ones({8, 8});
  block.key.weight = block.value.weight = at::ones({4, 8});
  block.gate.weight = block.up.weight = at::ones({6, 8});
  block.down.weight = at::ones({8, 6});
  block.num_heads = 2, block.num_key_value_heads = 1, block.head_size = 4;
  return block;
}

TEST(GatedBlock, ServesNeitherDropoutNorAlibi) {
  const at::Tensor x = at::zeros({3, 8});
  PackedAttention how{at::tensor({0, 3}, at::kInt), 3, {}};
  EXPECT_TRUE(gated_block_serves(x, 4, how));
  EXPECT_FALSE(gated_block_serves(x.narrow(0, 0, 0), 4, how)) << "nothing to compute";
  how.dropout = 0.1;
  EXPECT_TRUE(gated_block_serves(x, 4, how)) << "not in training";
  how.training = true;
  EXPECT_FALSE(gated_block_serves(x, 4, how));
  how.dropout = 0;
  how.alibi_slopes = at::ones({2});
  EXPECT_FALSE(gated_block_serves(x, 4, how));
}

TEST(GatedBlock, RefusesWhatItDoesNotServe) {
  const at::Tensor x = at::zeros({3, 8});
  PackedAttention how{at::tensor({0, 3}, at::kInt), 3, {}};
  EXPECT_THROW(gated_block(at::zeros({8}), small_block(), {}, how), Error) << "one dimension";
  EXPECT_THROW(gated_block(x.narrow(0, 0, 0), small_block(), {}, how), Error) << "no tokens";
  how.dropout = 0.1;
  how.training = true;
  EXPECT_THROW(gated_block(x, small_block(), {}, how), Error) << "every pass would drop the same";
}

TEST(GatedBlock, AParameterInTwoPlacesGetsTheGradientsOfBoth) {
  const at::Tensor x = random_tensor({3, 8}, at::kFloat, at::kCPU, 1);
  const PackedAttention how{at::tensor({0, 3}, at::kInt), 3, {}};
  GatedBlock block = small_block();
  const at::Tensor tied = random_tensor({8, 8}, at::kFloat, at::kCPU, 2, 0.3).requires_grad_(true);
  block.query.weight = block.output.weight = tied;
  block.key.weight = random_tensor({4, 8}, at::kFloat, at::kCPU, 3);
  gated_block(x, block, {}, how).sum().backward();

  GatedBlock apart = block;
  for (auto* projection : {&apart.query, &apart.output}) {
    projection->weight = tied.detach().clone().requires_grad_(true);
  }
  gated_block(x, apart, {}, how).sum().backward();
  EXPECT_GT(apart.query.weight.grad().abs().max().item<double>(), 1e-3);
  EXPECT_LE(difference(tied.grad(), apart.query.weight.grad() + apart.output.weight.grad()), 1e-6);
}

TEST(GatedBlock, RefusesWhatDoesNotFitTogether) {
  const at::Tensor x = at::zeros({3, 8});
  const PackedAttention how{at::tensor({0, 3}, at::kInt), 3, {}};
  EXPECT_NO_THROW(gated_block(x, small_block(), {}, how));
  GatedBlock block = small_block();
  block.key.weight = at::ones({8, 8});
  EXPECT_THROW(gated_block(x, block, {}, how), Error);
  block = small_block();
  block.up.weight.reset();
  EXPECT_THROW(gated_block(x, block, {}, how), Error);
  block = small_block();
  block.down.weight.reset();
  EXPECT_THROW(gated_block(x, block, {}, how), Error);
  block = small_block();
  block.norm_before_mlp = at::ones({8}, at::kHalf);
  EXPECT_THROW(gated_block(x, block, {}, how), Error);
  block = small_block();
  block.query_norm = at::ones({4});
  EXPECT_THROW(gated_block(x, block, {}, how), Error);
  EXPECT_THROW(gated_block(x, small_block(), RotaryTable{at::ones({2, 2}), at::ones({2, 2})}, how), Error);
  EXPECT_THROW(gated_block(x, small_block(), {}, {at::tensor({0, 2}, at::kInt), 3, {}}), Error);
}

}  // namespace
}  // namespace tessera::kernels

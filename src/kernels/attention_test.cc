#include "kernels/attention.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "core/error.h"
#include "kernels/attention_paths.h"
#include "kernels/kernel_checks.h"

namespace tessera::kernels {
namespace {

TEST(PackedAttention, EqualsThePlainOneInFloat32) {
  for (const auto& one : attention_cases()) check_attention(one, at::kFloat, at::kCPU);
}

TEST(PackedAttention, OfOneProjectionEqualsThePlainOne) {
  for (const auto& one : attention_cases()) {
    check_attention(one, at::kFloat, at::kCPU, attention_of_heads);
    check_attention(one, at::kFloat, at::kCPU, attention_of_parts);
  }
}

TEST(PackedAttention, EqualsThePlainOneInHalfTypesWithinTheirError) {
  for (const auto& one : attention_cases()) {
    check_attention(one, at::kBFloat16, at::kCPU);
    check_attention(one, at::kHalf, at::kCPU);
  }
}

TEST(PackedAttention, OfTodaysDecodersEqualsThePlainOne) {
  for (const auto& one : decoder_attention_cases()) {
    for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) check_attention(one, type, at::kCPU);
    if (!one.alibi) check_attention(one, at::kFloat, at::kCPU, attention_by_passes);
  }
}

TEST(PackedAttention, OfTodaysDecodersByOperatorsAloneEqualsThePlainOne) {
  for (const auto& one : decoder_attention_cases()) check_attention(one, at::kFloat, at::kCPU, attention_by_operators);
}

TEST(PackedAttention, AWindowLeavesTheBitsOfWhatItHides) {
  // Keys outside every window of a block are not even read: NaN there changes nothing.
  const auto q = random_tensor({700, 2, 16}, at::kFloat, at::kCPU, 1);
  PackedAttention how{at::tensor({0, 700}, at::kInt), 700, {}};
  how.window = 100;
  const auto spoiled = q.clone();
  spoiled.narrow(0, 0, 250).fill_(NAN);
  EXPECT_TRUE(at::equal(packed_attention(q, q, q, how).narrow(0, 384, 316),
                        packed_attention(q, spoiled, spoiled, how).narrow(0, 384, 316)));
}

TEST(PackedAttention, AWindowLongerThanAnySequenceHidesNothing) {
  const auto q = random_tensor({200, 2, 16}, at::kFloat, at::kCPU, 1);
  PackedAttention how{at::tensor({0, 150, 200}, at::kInt), 150, {}};
  const auto all = packed_attention(q, q, q, how);
  for (const std::int64_t window : {std::int64_t{150}, std::numeric_limits<std::int64_t>::max()}) {
    how.window = window;
    EXPECT_TRUE(at::equal(packed_attention(q, q, q, how), all)) << window;
  }
}

TEST(PackedAttention, GroupedHeadsRepeatTheirGradientsWithAnyNumberOfThreads) {
  const auto q = random_tensor({400, 6, 16}, at::kBFloat16, at::kCPU, 1).requires_grad_(true);
  const auto kv = random_tensor({400, 2, 16}, at::kBFloat16, at::kCPU, 2).requires_grad_(true);
  const PackedAttention how{at::tensor({0, 150, 400}, at::kInt), 250, {}};
  const int num_threads = at::get_num_threads();
  const auto gradient = [&](int threads) {
    at::set_num_threads(threads);
    kv.mutable_grad().reset();
    packed_attention(q, kv, kv, how).sum().backward();
    return kv.grad();
  };
  const auto one = gradient(1), three = gradient(3);
  at::set_num_threads(num_threads);
  EXPECT_TRUE(at::equal(one, three));
}

TEST(PackedAttention, DropoutIsTheSameInForwardAndBackward) {
  check_attention_dropout(at::kFloat, at::kCPU);
  check_attention_dropout(at::kBFloat16, at::kCPU);
}

TEST(PackedAttention, ByOperatorsAloneEqualsThePlainOne) {
  for (const auto& one : attention_cases()) check_attention(one, at::kFloat, at::kCPU, attention_by_operators);
  check_attention_dropout(at::kFloat, at::kCPU, attention_by_operators);
}

TEST(PackedAttention, SpareDimensionsOfTheHeadsMakeAlibi) {
  // Scores of the widened q and k differ from the plain ones by slope * (j - i), up to a constant per query.
  const std::int64_t L = 700, H = 4;
  for (const std::int64_t D : {64, 80}) {
    for (const auto type : {at::kBFloat16, at::kHalf}) {
      PackedAttention how{at::tensor({0, 5, 5 + static_cast<int>(L)}, at::kInt), L,
                          at::tensor({0.9f, 0.5f, 0.1f, 0.004f})};
      const auto q = random_tensor({5 + L, H, D}, type, at::kCPU, 1),
                 k = random_tensor({5 + L, H, D}, type, at::kCPU, 2);
      const auto [wide_q, wide_k] = with_alibi_dimensions(q, k, how);
      const auto scores = [&](const at::Tensor& a, const at::Tensor& b) {
        const auto part = [](const at::Tensor& x) { return x.narrow(0, 5, L).transpose(0, 1).to(at::kDouble); };
        return at::matmul(part(a), part(b).transpose(1, 2)) / std::sqrt(static_cast<double>(D));
      };
      const auto bias = scores(wide_q, wide_k) - scores(q, k);
      const auto expected =
          how.alibi_slopes->to(at::kDouble).view({H, 1, 1}) * at::arange(L, at::kDouble).view({1, 1, L});
      EXPECT_LE((bias - expected).abs().max().item<double>(), 1e-3) << D << " " << type;
    }
  }
}

TEST(PackedAttention, SequencesDoNotSeeEachOther) {
  const auto q = random_tensor({30, 2, 8}, at::kFloat, at::kCPU, 1);
  const auto alone = [&](std::int64_t begin, std::int64_t length) {
    const auto part = q.narrow(0, begin, length);
    return packed_attention(part, part, part, {at::tensor({0, static_cast<int>(length)}, at::kInt), length, {}});
  };
  const auto packed = packed_attention(q, q, q, {at::tensor({0, 11, 30}, at::kInt), 19, {}});
  EXPECT_TRUE(at::allclose(packed, at::cat({alone(0, 11), alone(11, 19)}), 1e-6, 1e-6));
}

TEST(PackedAttention, RefusesWhatDoesNotFitTogether) {
  const auto q = random_tensor({6, 2, 8}, at::kFloat, at::kCPU, 1);
  const auto with = [&](const at::Tensor& offsets, std::optional<at::Tensor> slopes = {}, double dropout = 0) {
    packed_attention(q, q, q, {offsets, 6, slopes, dropout, true});
  };
  EXPECT_NO_THROW(with(at::tensor({0, 6}, at::kInt)));
  EXPECT_THROW(with(at::tensor({0, 5}, at::kInt)), Error) << "not all tokens";
  EXPECT_THROW(with(at::tensor({0, 4, 3, 6}, at::kInt)), Error) << "offsets that fall";
  EXPECT_THROW(with(at::tensor({0, 6}, at::kLong)), Error) << "wrong type";
  EXPECT_THROW(with(at::tensor({0, 6}, at::kInt), at::ones({3})), Error) << "a slope too many";
  EXPECT_THROW(with(at::tensor({0, 6}, at::kInt), {}, 1.0), Error) << "drops everything";
  EXPECT_THROW(packed_attention(q, q.narrow(0, 0, 5), q, {at::tensor({0, 6}, at::kInt), 6, {}}), Error);
  EXPECT_THROW(packed_attention(q, q.narrow(2, 0, 4), q.narrow(2, 0, 4), {at::tensor({0, 6}, at::kInt), 6, {}}), Error);
  const auto three = random_tensor({6, 3, 8}, at::kFloat, at::kCPU, 1);
  EXPECT_THROW(packed_attention(three, q, q, {at::tensor({0, 6}, at::kInt), 6, {}}), Error) << "3 heads for 2";
  PackedAttention how{at::tensor({0, 6}, at::kInt), 6, {}};
  how.window = -1;
  EXPECT_THROW(packed_attention(q, q, q, how), Error) << "a negative window";
  how.window = 0;
  how.scale = -0.5;
  EXPECT_THROW(packed_attention(q, q, q, how), Error) << "a negative scale";
  EXPECT_THROW(packed_attention(q.to(at::kDouble), q, q, {at::tensor({0, 6}, at::kInt), 6, {}}), Error);
}

}  // namespace
}  // namespace tessera::kernels

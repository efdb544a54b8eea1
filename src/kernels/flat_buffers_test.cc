#include "kernels/flat_buffers.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <bit>

namespace tessera::kernels {
namespace {

at::Tensor with_bits(const std::vector<std::uint32_t>& bits) {
  return at::tensor(std::vector<std::int64_t>(bits.begin(), bits.end()), at::kLong).to(at::kInt).view(at::kFloat);
}

std::uint32_t bits_of(const at::Tensor& numbers, std::int64_t i) {
  return std::bit_cast<std::uint32_t>(numbers.const_data_ptr<float>()[i]);
}

TEST(SplitFloats, AreExactButForTiesThatAreRoundedDown) {
  std::vector<std::uint32_t> bits;
  // Every remainder, around an even and an odd bfloat16, of both signs; then the ends of the range.
  for (const std::uint32_t top : {0x3f80u, 0x3f81u, 0xbf80u, 0xbf81u, 0x0000u, 0x8000u}) {
    for (std::uint32_t low = 0; low < 0x10000; ++low) bits.push_back(top << 16 | low);
  }
  bits.insert(bits.end(), {0x7f7fffffu, 0xff7fffffu, 0x7f800000u, 0xff800000u, 0x00000001u, 0x80000001u});
  const at::Tensor numbers = with_bits(bits), copies = numbers.to(at::kBFloat16);
  const at::Tensor joined = SplitFloats{copies, remainder_of(numbers, copies)}.joined();
  std::int64_t num_moved = 0;
  for (std::int64_t i = 0; i < numbers.numel(); ++i) {
    const std::uint32_t number = bits[static_cast<std::size_t>(i)];
    const bool is_tie_down = (number & 0x1ffff) == 0x8000;
    ASSERT_EQ(bits_of(joined, i), is_tie_down ? number - 1 : number) << std::hex << number;
    num_moved += is_tie_down;
  }
  EXPECT_EQ(num_moved, 4);
  EXPECT_TRUE(at::equal(joined.to(at::kBFloat16), copies));
}

TEST(SplitFloats, AreJoinedPieceByPieceLikeTheWhole) {
  const at::Tensor numbers = at::randn({(4 << 20) + 77}), copies = numbers.to(at::kBFloat16);
  const SplitFloats halves{copies, remainder_of(numbers, copies)};
  EXPECT_LE((halves.joined() - numbers).abs().max().item<float>(), 1e-6f);
  EXPECT_TRUE(at::equal(halves.narrow(1000, 5000).joined(), halves.joined().narrow(0, 1000, 5000)));
  EXPECT_EQ(halves.type(), at::kFloat);
  EXPECT_TRUE(SplitFloats{numbers}.joined().is_same(numbers));
}

}  // namespace
}  // namespace tessera::kernels

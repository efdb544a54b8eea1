#include "weights/damaged_values.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace tessera {
namespace {

struct Numbers {
  WeightType type;
  int num_bytes;
  std::vector<std::uint64_t> finite, infinite, nan;  // their bits
};

// Of each type: zeros, the largest and the smallest numbers; both infinities; quiet and signalling NaN, the ends of
// their ranges.
const std::vector<Numbers> kTypes = {
    {WeightType::kF32,
     4,
     {0, 0x80000000, 0x7f7fffff, 0xff7fffff, 1, 0x3f800000},
     {0x7f800000, 0xff800000},
     {0x7f800001, 0x7fc00000, 0x7fffffff, 0xffc00000, 0xffffffff}},
    {WeightType::kF16, 2, {0, 0x8000, 0x7bff, 0xfbff, 1, 0x3c00}, {0x7c00, 0xfc00}, {0x7c01, 0x7e00, 0x7fff, 0xffff}},
    {WeightType::kBF16, 2, {0, 0x8000, 0x7f7f, 0xff7f, 1, 0x3f80}, {0x7f80, 0xff80}, {0x7f81, 0x7fc0, 0x7fff, 0xffff}},
    {WeightType::kF64,
     8,
     {0, 0x8000000000000000, 0x7fefffffffffffff, 0xffefffffffffffff, 1},
     {0x7ff0000000000000, 0xfff0000000000000},
     {0x7ff0000000000001, 0x7ff8000000000000, 0xffffffffffffffff}},
    {WeightType::kF8E4M3, 1, {0, 0x80, 0x7e, 0xfe, 1}, {}, {0x7f, 0xff}},
    {WeightType::kF8E5M2, 1, {0, 0x80, 0x7b, 0xfb, 1}, {0x7c, 0xfc}, {0x7d, 0x7f, 0xff}},
};

// Numbers around one at `place`, from an address that is not aligned.
Damage damage_with(const Numbers& type, std::uint64_t bits, int place, int numel) {
  std::vector<char> bytes(static_cast<std::size_t>(numel * type.num_bytes + 1));
  for (int i = 0; i < numel; ++i) {
    const std::uint64_t number = i == place ? bits : type.finite[static_cast<std::size_t>(i) % type.finite.size()];
    std::memcpy(bytes.data() + 1 + i * type.num_bytes, &number, static_cast<std::size_t>(type.num_bytes));
  }
  return damage_in(type.type, bytes.data() + 1, numel);
}

TEST(DamagedValues, AreFoundInEveryTypeAtEveryPlace) {
  for (const Numbers& type : kTypes) {
    for (const int numel : {1, 2, 3, 7, 8, 9, 16, 17, 31, 64, 65, 130}) {
      for (int place = 0; place < numel; ++place) {
        SCOPED_TRACE(testing::Message() << torch_name(type.type) << " " << place << " of " << numel);
        for (const std::uint64_t bits : type.finite) EXPECT_EQ(damage_with(type, bits, place, numel), Damage::kNone);
        for (const std::uint64_t bits : type.infinite) {
          EXPECT_EQ(damage_with(type, bits, place, numel), Damage::kInfinite) << std::hex << bits;
        }
        for (const std::uint64_t bits : type.nan) {
          EXPECT_EQ(damage_with(type, bits, place, numel), Damage::kNan) << std::hex << bits;
        }
      }
    }
  }
}

TEST(DamagedValues, WholeNumbersHaveNone) {
  const std::vector<char> bytes(64, '\xff');
  for (const WeightType type : {WeightType::kBool, WeightType::kU8, WeightType::kI32, WeightType::kI64}) {
    EXPECT_EQ(damage_in(type, bytes.data(), 64 / bytes_of(type)), Damage::kNone);
  }
}

}  // namespace
}  // namespace tessera

#include "weights/safetensors.h"

#include <gtest/gtest.h>

#include "core/file.h"
#include "support/weight_files.h"

namespace tessera {
namespace {

std::string file_of(const std::string& header, std::size_t data_bytes) {
  std::string length;
  for (int i = 0; i < 8; ++i) length += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return length + header + std::string(data_bytes, '\0');
}

struct BrokenHeader {
  const char* name;
  std::string header;
  std::size_t data_bytes;
  const char* message;
};

class BrokenSafetensors : public testing::TestWithParam<BrokenHeader> {};

TEST_P(BrokenSafetensors, IsRefusedByFileAndTensor) {
  const std::string file = file_of(GetParam().header, GetParam().data_bytes);
  EXPECT_REFUSED(parse_safetensors(file, "m.safetensors"), GetParam().message);
  EXPECT_REFUSED(parse_safetensors(file, "m.safetensors"), "m.safetensors");
}

INSTANTIATE_TEST_SUITE_P(
    All, BrokenSafetensors,
    testing::Values(
        BrokenHeader{
            "Overlap",
            R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
            8, "tensor 'b': overlaps tensor 'a'"},
        BrokenHeader{
            "Gap",
            R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
            12, "tensor 'b': begins at byte 8 of the data, but the previous tensor ends at 4"},
        BrokenHeader{"Truncated", R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", 15,
                     "tensor 'a': ends at byte 16 of the data, but the file holds only 15"},
        BrokenHeader{"TooLong", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 9, "5 belong to none"},
        BrokenHeader{"UnknownType", R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", 4,
                     "tensor 'a': unknown dtype \"F33\"; known: BOOL, U8"},
        BrokenHeader{"WrongSize", R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,4]}})", 4,
                     "tensor 'a': F32 of shape [3] takes 12 bytes, but data_offsets [0, 4] hold 4"},
        BrokenHeader{"NotANumber", R"({"a":{"dtype":"F32","shape":[NaN],"data_offsets":[0,4]}})", 4, "(header):1:"},
        BrokenHeader{"NegativeSize", R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4,
                     "tensor 'a': each size of shape must be a whole number from 0 to 2^63 - 1, found -1"},
        BrokenHeader{"FractionalSize", R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4, "found 1.0"},
        BrokenHeader{"HugeSize", R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}})", 4,
                     "found 18446744073709551615"},
        BrokenHeader{"Overflow", R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
                     "tensor 'a': a shape of [4294967296, 4294967296] overflows"},
        BrokenHeader{"OverflowInBytes", R"({"a":{"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]}})",
                     0, "overflows"},
        BrokenHeader{"BackwardOffsets", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4,
                     "tensor 'a': data_offsets end at 0 before they begin at 4"},
        BrokenHeader{"OneOffset", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4]}})", 4,
                     "data_offsets must be [begin, end]"},
        BrokenHeader{"NoShape", R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4, "tensor 'a': shape is missing"},
        BrokenHeader{"UnknownKey", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"scale":2}})", 4,
                     "tensor 'a': unknown key 'scale'"},
        BrokenHeader{
            "TensorTwice",
            R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
            2, "the key \"a\" appears twice"},
        BrokenHeader{"NoObject", "[1, 2]", 0, "does not begin with '{'"},
        BrokenHeader{"NumberInMetadata", R"({"__metadata__":{"format":1}})", 0, "'format' must be a string"}),
    [](const auto& broken) { return broken.param.name; });

TEST(Safetensors, WrongHeaderLengthsAreRefused) {
  EXPECT_REFUSED(parse_safetensors(R"({"model_type": "bloom"})", "config.json"),
                 "this is JSON, not a safetensors file");
  EXPECT_REFUSED(parse_safetensors("", "m"), "it has 0 bytes");
  EXPECT_REFUSED(parse_safetensors("1234567", "m"), "it has 7 bytes");
  EXPECT_REFUSED(parse_safetensors(std::string("\x10\0\0\0\0\0\0\0{}", 10), "m"),
                 "truncated: the header takes 16 bytes, but only 2 follow");
  EXPECT_REFUSED(parse_safetensors(std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10), "m"),
                 "18446744073709551615 bytes, more than the allowed 100000000");
}

// Every prefix of a real file is refused, none crashes.
TEST(Safetensors, EveryTruncationIsRefused) {
  const std::string file = read_file(reference("every_type.safetensors"));
  EXPECT_EQ(parse_safetensors(file, "m").entries.size(), 15u);
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_THROW(parse_safetensors(file.substr(0, size), "m"), UsageError) << size;
  }
}

TEST(Safetensors, AnEmptyTensorMayHaveAnyOtherSizes) {
  const auto header = parse_safetensors(
      file_of(R"({"a":{"dtype":"F32","shape":[9223372036854775807,0,9223372036854775807],"data_offsets":[0,0]}})", 0),
      "m");
  EXPECT_EQ(header.entries.at(0).numel, 0);
}

TEST(Safetensors, AComposedHeaderIsReadBackAndAligned) {
  WeightEntry a, b;
  a.name = "quote\" and \xc3\xa9";
  a.type = WeightType::kF64;
  a.shape = {2, 3};
  a.numel = 6;
  b.name = "b";
  b.type = WeightType::kBool;
  b.numel = 1;
  std::string file = compose_safetensors_header({a, b}, {{"format", "pt"}});
  EXPECT_EQ(file.size() % 64, 0u);
  file.append(49, '\0');
  const SafetensorsHeader header = parse_safetensors(file, "m");
  ASSERT_EQ(header.entries.size(), 2u);
  EXPECT_EQ(header.entries[0].name, a.name);
  EXPECT_EQ(header.entries[0].shape, a.shape);
  EXPECT_EQ(header.entries[1].offset_bytes, static_cast<std::int64_t>(file.size()) - 1);
  EXPECT_EQ(header.metadata.at("format"), "pt");
}

}  // namespace
}  // namespace tessera

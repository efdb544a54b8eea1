#include "weights/torch_file.h"

#include <gtest/gtest.h>

#include "core/file.h"
#include "support/test_folder.h"
#include "support/weight_files.h"
#include "weights/pickle.h"
#include "weights/zip.h"

namespace tessera {
namespace {

// A file as we write it, from its records.
std::string archive_of(const std::vector<std::pair<std::string, std::string>>& records) {
  const TestFolder folder;
  OutputFile file(folder.path() / "a.bin");
  ZipWriter zip(file);
  for (const auto& [name, bytes] : records) zip.add(name, bytes);
  zip.finish();
  file.become_target();
  return read_file(folder.path() / "a.bin");
}

PickledTensor good_tensor() {
  return {"w", WeightType::kF32, "0", 6, 0, {2, 3}, {3, 1}};
}

struct BrokenPickle {
  const char* name;
  PickledTensor tensor;
  const char* message;
};

class BrokenTensor : public testing::TestWithParam<BrokenPickle> {};

TEST_P(BrokenTensor, IsRefusedByFileAndTensor) {
  const std::string file =
      archive_of({{"a/data.pkl", compose_pickled_state_dict({GetParam().tensor})}, {"a/data/0", std::string(24, 'x')}});
  EXPECT_REFUSED(parse_torch_file(file, "m.bin"), std::string("m.bin: tensor 'w': ") + GetParam().message);
}

constexpr WeightType kF32 = WeightType::kF32;
// As good_tensor(), except for one thing. In order: storage's key and elements, offset, shape, strides.
INSTANTIATE_TEST_SUITE_P(
    All, BrokenTensor,
    testing::Values(
        BrokenPickle{"MissingStorage", {"w", kF32, "1", 6, 0, {2, 3}, {3, 1}}, "its storage 1 is missing"},
        BrokenPickle{"StorageTooSmall",
                     {"w", kF32, "0", 7, 0, {2, 3}, {3, 1}},
                     "its storage claims 7 elements of 4 bytes, but storage 0 has 24 bytes"},
        BrokenPickle{"NegativeStorage", {"w", kF32, "0", -1, 0, {2, 3}, {3, 1}}, "its storage claims -1"},
        BrokenPickle{"TooLarge",
                     {"w", kF32, "0", 6, 0, {3, 3}, {3, 1}},
                     "shape [3, 3], strides [3, 1] and offset 0 reach outside its storage of 6 elements"},
        BrokenPickle{
            "OffsetOutside", {"w", kF32, "0", 6, 1, {2, 3}, {3, 1}}, "shape [2, 3], strides [3, 1] and offset 1"},
        BrokenPickle{
            "NegativeOffset", {"w", kF32, "0", 6, -1, {2, 3}, {3, 1}}, "shape [2, 3], strides [3, 1] and offset -1"},
        BrokenPickle{
            "NegativeSize", {"w", kF32, "0", 6, 0, {-2, 3}, {3, 1}}, "a shape of [-2, 3] is negative or overflows"},
        BrokenPickle{"NegativeStride", {"w", kF32, "0", 6, 0, {2, 3}, {-3, 1}}, "shape [2, 3], strides [-3, 1]"},
        BrokenPickle{"OverflowingStride", {"w", kF32, "0", 6, 0, {2, 3}, {INT64_MAX, INT64_MAX}}, "shape [2, 3]"},
        BrokenPickle{"OverflowingShape", {"w", kF32, "0", 6, 0, {INT64_MAX, INT64_MAX}, {3, 1}}, "a shape of"},
        BrokenPickle{"Repeated",
                     {"w", kF32, "0", 6, 0, {1'000'000, 1'000'000}, {0, 0}},
                     "a shape of [1000000, 1000000] repeats"},
        BrokenPickle{"StridesMissing", {"w", kF32, "0", 6, 0, {2, 3}, {1}}, "its numbers of strides and sizes differ"}),
    [](const auto& broken) { return broken.param.name; });

TEST(TorchFile, WhatWeWriteIsReadBack) {
  const std::string data = "123456789012345678901234";
  const std::string file = archive_of(
      {{"a/data.pkl", compose_pickled_state_dict({good_tensor()})}, {"a/data/0", data}, {"a/version", "3\n"}});
  const auto entries = parse_torch_file(file, "m.bin");
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(file.substr(entries[0].offset_bytes, 24), data);
  EXPECT_EQ(entries[0].offset_bytes % 64, 0);
}

class RealTorchFile : public testing::TestWithParam<const char*> {};

TEST_P(RealTorchFile, EveryTruncationIsRefused) {
  const std::string file = read_file(reference(GetParam()));
  EXPECT_GT(parse_torch_file(file, "m").size(), 5u);
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_THROW(parse_torch_file(file.substr(0, size), "m"), UsageError) << size;
  }
  EXPECT_THROW(parse_torch_file(file + "x", "m"), UsageError);
}

// One wrong bit anywhere gives a refusal or tensors that lie in the file, never a crash.
TEST_P(RealTorchFile, EveryFlippedBitIsSurvived) {
  const std::string file = read_file(reference(GetParam()));
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    std::string changed = file;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    try {
      for (const WeightEntry& entry : parse_torch_file(changed, "m")) {
        EXPECT_LE(entry.offset_bytes + entry.num_bytes(), static_cast<std::int64_t>(file.size()));
      }
    } catch (const UsageError&) {
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RealTorchFile, testing::Values("batch_norm.pth", "odd_legacy.pth"),
                         [](const auto& file) { return std::string(file.param).substr(0, 3); });

// The parts of a file from before torch 1.6, each of which can be wrong.
std::string legacy_file(const std::string& version, const std::string& system, const std::string& state_dict,
                        const std::string& keys, const std::string& storages) {
  return std::string("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15) + version + system + state_dict +
         keys + storages;
}

TEST(LegacyTorchFile, EveryPartIsChecked) {
  const std::string version = "M\xe9\x03.", system = "}" + pickled_text("little_endian") + "\x88s.";
  const std::string tensors = compose_pickled_state_dict({good_tensor()}), keys = "]" + pickled_text("0") + "a.";
  const std::string storage = std::string("\x06\0\0\0\0\0\0\0", 8) + std::string(24, 'x');
  const auto entries = parse_torch_file(legacy_file(version, system, tensors, keys, storage), "m");
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].num_bytes(), 24);

  const std::string big_endian = "}" + pickled_text("little_endian") + "\x89s.";
  const std::string two_keys = "](" + pickled_text("0") + pickled_text("0") + "e.",
                    huge = std::string(8, '\xff') + std::string(24, 'x');
  auto bytes = good_tensor();
  bytes.name = "b";
  bytes.type = WeightType::kU8;
  const std::pair<std::string, const char*> broken[] = {
      {legacy_file("K\x01.", system, tensors, keys, storage), "not version 1001"},
      {legacy_file(version, "N.", tensors, keys, storage), "the description of the machine that wrote it is missing"},
      {legacy_file(version, big_endian, tensors, keys, storage), "big-endian"},
      {legacy_file(version, system, "N.", keys, storage), "it holds None"},
      {legacy_file(version, system, compose_pickled_state_dict({good_tensor(), bytes}), keys, storage),
       "tensor 'b': another tensor uses its storage 0 with elements of 4 bytes"},
      {legacy_file(version, system, tensors, "N.", storage), "the list of its storages is missing"},
      {legacy_file(version, system, tensors, "].", ""), "tensor 'w': its storage 0 is missing"},
      {legacy_file(version, system, tensors, "]" + pickled_text("1") + "a.", storage), "belongs to no tensor"},
      {legacy_file(version, system, tensors, two_keys, storage + storage), "storage 0 is listed twice"},
      {legacy_file(version, system, tensors, keys, "1234567"), "truncated before storage 0"},
      {legacy_file(version, system, tensors, keys, huge), "storage 0 has 18446744073709551615 elements"},
      {legacy_file(version, system, tensors, keys, storage + "more"), "4 bytes after its storages"},
  };
  for (const auto& [file, message] : broken) EXPECT_REFUSED(parse_torch_file(file, "m"), message);
}

TEST(Pickle, NothingIsExecutedAndTheFunctionIsNamed) {
  EXPECT_REFUSED(parse_pickled_state_dict("\x80\x02"
                                          "cposix\nsystem\n(" +
                                              pickled_text("ls") + "tR.",
                                          "m"),
                 "posix.system");
  EXPECT_REFUSED(parse_pickled_state_dict("\x80\x02"
                                          "cbuiltins\neval\n)R.",
                                          "m"),
                 "builtins.eval");
  EXPECT_REFUSED(parse_pickled_state_dict("\x80\x02"
                                          "ctorch._utils\n_rebuild_tensor_v3\n.",
                                          "m"),
                 "torch._utils._rebuild_tensor_v3");
}

TEST(Pickle, OperationsBeyondTheSubsetAreNamed) {
  EXPECT_REFUSED(parse_pickled_state_dict("\x80\x02"
                                          "i",
                                          "m"),
                 "operation 0x69");
  EXPECT_REFUSED(parse_pickled_state_dict("\x80\x04.", "m"), "pickle protocol 4");
}

TEST(Pickle, BrokenProgramsAreRefused) {
  const std::pair<std::string, const char*> broken[] = {
      {"", "it ends too early"},
      {".", "its stack is empty"},
      {"}", "it ends too early"},
      {"t.", "no mark on its stack"},
      {"(.", "a mark where a value should be"},
      {"h\x05.", "memo 5 is read before it is written"},
      {"}K\x01s.", "its stack is empty"},
      {"]K\x01K\x02s.", "items for a list"},
      {"}(K\x01u.", "a key without a value"},
      {std::string("X\xff\xff\xff\xff", 5), "it ends too early"},
      {"X" + std::string("\x01\0\0\0", 4) + "\xff.", "not UTF-8"},
      {"\x8a\x09" + std::string(9, 'x') + ".", "a whole number of 9 bytes"},
      {"K\x01.", "it holds a whole number"},
      {"}K\x01K\x02s.", "a key is a whole number"},
      {"}" + pickled_text("epoch") + "K\x02s.", "entry 'epoch' is a whole number, not a tensor"},
      {"NQ.", "a persistent id that is not a storage"},
      {"N)R.", "a call to a non-function"},
      {"]}b.", "attributes set on an object"},
  };
  for (const auto& [pickle, message] : broken) {
    SCOPED_TRACE(message);
    EXPECT_REFUSED(parse_pickled_state_dict(pickle, "m"), message);
  }
}

TEST(Pickle, ATensorThatStandsTwiceIsRefused) {
  EXPECT_REFUSED(parse_pickled_state_dict(compose_pickled_state_dict({good_tensor(), good_tensor()}), "m"),
                 "tensor 'w' occurs twice");
}

TEST(ZipDirectory, ChecksumsAreZips) {
  EXPECT_EQ(crc32("123456789"), 0xcbf43926u);  // the check value of this checksum
  EXPECT_EQ(crc32("456789", crc32("123")), 0xcbf43926u);
}

TEST(ZipDirectory, RecordsThatOverlapOrStandTwiceAreRefused) {
  const std::string file = archive_of({{"a", "12345678"}, {"b", "12345678"}});
  // Makes the directory's second entry equal to the first.
  const std::size_t first = file.find("PK\x01\x02"), second = file.find("PK\x01\x02", first + 4);
  std::string same = file;
  same.replace(second, 47, file.substr(first, 47));
  EXPECT_REFUSED(parse_zip_directory(same, "m"), "record 'a' occurs twice");
  std::string renamed = file;
  renamed[second + 46] = 'c';
  EXPECT_REFUSED(parse_zip_directory(renamed, "m"), "record 'c' has a different name in its own header");
}

TEST(ZipDirectory, CountsAreHeldAgainstTheDirectory) {
  std::string file = archive_of({{"a", "1"}});
  const std::size_t end = file.rfind("PK\x05\x06");
  file[end + 10] = '\x7f';
  EXPECT_REFUSED(parse_zip_directory(file, "m"), "cannot hold 127 entries");
}

// A small archive with every number in its zip64 field, as in a large file.
TEST(ZipDirectory, Zip64IsRead) {
  const auto number = [](std::uint64_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
    return out;
  };
  const std::string none(4, '\xff');
  std::string file = "before";
  const std::string fields = number(45, 2) + number(0, 8) + number(crc32("hello"), 4) + none + none;
  file += "PK\x03\x04" + fields + number(1, 2) + number(20, 2) + "a" + number(1, 2) + number(16, 2) + number(5, 8) +
          number(5, 8) + "hello";
  const std::uint64_t directory = file.size();
  file += "PK\x01\x02" + number(45, 2) + fields + number(1, 2) + number(28, 2) + number(0, 10) + none + "a" +
          number(1, 2) + number(24, 2) + number(5, 8) + number(5, 8) + number(6, 8);
  const std::uint64_t end = file.size();
  file += "PK\x06\x06" + number(44, 8) + number(45, 2) + number(45, 2) + number(0, 8) + number(1, 8) + number(1, 8) +
          number(end - directory, 8) + number(directory, 8);
  file += "PK\x06\x07" + number(0, 4) + number(end, 8) + number(1, 4);
  file += "PK\x05\x06" + number(0, 4) + number(0xffff, 2) + number(0xffff, 2) + none + none + number(0, 2);
  const auto records = parse_zip_directory(file, "m");
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(file.substr(records[0].offset_bytes, records[0].num_bytes), "hello");
}

TEST(ZipDirectory, MoreRecordsThanAPlainDirectoryCountsComeBack) {
  std::vector<std::pair<std::string, std::string>> records;
  for (int i = 0; i < 66'000; ++i) records.emplace_back("r" + std::to_string(i), "x");
  EXPECT_EQ(parse_zip_directory(archive_of(records), "m").size(), 66'000u);
}

}  // namespace
}  // namespace tessera

#include "weights/checkpoint_reader.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <random>
#include <utility>

#include "support/message_of.h"
#include "support/test_folder.h"
#include "support/weight_files.h"
#include "weights/block_checksums.h"

namespace tessera {
namespace {

constexpr std::int64_t kNumelOfBlock = kChecksumBlock / 4;

// A tensor whose element i is i, in two files of two and a half blocks and of one and a bit; it begins 3 elements into
// each.
class SeveralBlocks : public testing::Test {
 protected:
  void SetUp() override {
    tensor_.shape = {kNumel};
    write("first", 0, kFirst);
    write("second", kFirst, kNumel);
    index_.tensors["model.x"] = tensor_;
  }

  CheckpointReader reader() const { return {folder_.path(), index_}; }

  static std::vector<std::int32_t> read(CheckpointReader& reader, std::int64_t begin, std::int64_t end) {
    std::vector<std::int32_t> values(static_cast<std::size_t>(end - begin));
    reader.read({range(reader, begin, end, values)});
    return values;
  }
  static TensorRange range(const CheckpointReader& reader, std::int64_t begin, std::int64_t end,
                           std::vector<std::int32_t>& to) {
    return {&reader.index().tensors.at("model.x"), begin, end, reinterpret_cast<char*>(to.data())};
  }
  static std::vector<std::int32_t> counted(std::int64_t begin, std::int64_t end) {
    std::vector<std::int32_t> values(static_cast<std::size_t>(end - begin));
    std::iota(values.begin(), values.end(), static_cast<std::int32_t>(begin));
    return values;
  }
  void damage(const std::string& file, std::int64_t offset) const {
    std::fstream stream(folder_.path() / file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(offset);
    stream.put('\x7e');
    ASSERT_TRUE(stream.good());
  }

  static constexpr std::int64_t kFirst = 2 * kNumelOfBlock + kNumelOfBlock / 2, kNumel = kFirst + kNumelOfBlock + 1000;
  TestFolder folder_;
  CheckpointIndex index_;
  StoredTensor tensor_{WeightType::kI32, {}, {}};

 private:
  void write(const std::string& name, std::int64_t begin, std::int64_t end) {
    std::string bytes(12, '#');
    const std::vector<std::int32_t> values = counted(begin, end);
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(std::int32_t));
    std::ofstream(folder_.path() / name, std::ios::binary) << bytes;
    BlockChecksums checksums;
    checksums.add(bytes);
    index_.files[name] = {std::ssize(bytes), checksums.finish()};
    tensor_.parts.push_back({name, begin, end, 12});
  }
};

TEST_F(SeveralBlocks, AnyRangeIsRead) {
  CheckpointReader reader = this->reader();
  EXPECT_EQ(read(reader, 0, kNumel), counted(0, kNumel));
  std::mt19937 random(1);
  for (int turn = 0; turn < 20; ++turn) {
    std::int64_t begin = random() % kNumel, end = random() % kNumel;
    if (begin > end) std::swap(begin, end);
    EXPECT_EQ(read(reader, begin, end), counted(begin, end)) << begin << " to " << end;
  }
  // One after the other: blocks are read in parts.
  for (std::int64_t begin = 0; begin < kNumel; begin += 1'000'003) {
    const std::int64_t end = std::min(kNumel, begin + 1'000'003);
    EXPECT_EQ(read(reader, begin, end), counted(begin, end)) << begin;
  }
}

// Also of one block, and the same twice.
TEST_F(SeveralBlocks, ManyRangesAreReadAtOnce) {
  CheckpointReader reader = this->reader();
  const std::vector<std::pair<std::int64_t, std::int64_t>> wanted = {
      {0, kNumel}, {0, kNumel},
      {5, 6},      {kFirst - 7, kFirst + 7},
      {100, 100},  {kNumelOfBlock - 3, 2 * kNumelOfBlock - 3}};
  std::vector<std::vector<std::int32_t>> values;
  std::vector<TensorRange> ranges;
  values.reserve(wanted.size());
  for (const auto& [begin, end] : wanted) {
    values.emplace_back(static_cast<std::size_t>(end - begin));
    ranges.push_back(range(reader, begin, end, values.back()));
  }
  reader.read(ranges);
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(values[i], counted(wanted[i].first, wanted[i].second)) << i;
}

// Whichever thread finds its own first: the later one is in a shorter block.
TEST_F(SeveralBlocks, TheFirstDamagedBlockIsNamed) {
  const int num_threads = at::get_num_threads();
  at::set_num_threads(4);
  damage("first", kChecksumBlock + 5);
  damage("first", 2 * kChecksumBlock + 5);
  damage("second", 20);
  CheckpointReader reader = this->reader();
  const std::string first = (folder_.path() / "first").string(), second = (folder_.path() / "second").string();
  const std::string middle = first + ": damaged: bytes 16777216 to 33554431 are not those that were saved";
  const std::string last = first + ": damaged: bytes 33554432 to 41943051 are not those that were saved";
  const std::string other = second + ": damaged: bytes 0 to 16777215 are not those that were saved";
  const auto reading = [&](std::int64_t begin, std::int64_t end) {
    return message_of([&] { read(reader, begin, end); });
  };
  for (int turn = 0; turn < 5; ++turn) EXPECT_EQ(reading(0, kNumel), middle);
  EXPECT_EQ(read(reader, 0, kNumelOfBlock - 3), counted(0, kNumelOfBlock - 3));  // touches none
  EXPECT_EQ(reading(kFirst - 1, kFirst), last);
  EXPECT_EQ(reading(kFirst, kFirst + 1), other);
  const auto verifying = [&](int rank) { return message_of([&] { reader.verify(rank, 5); }); };
  EXPECT_NO_THROW(reader.verify(0, 5));
  EXPECT_EQ(verifying(1), middle);
  EXPECT_EQ(verifying(2), last);
  EXPECT_EQ(verifying(3), other);
  EXPECT_NO_THROW(reader.verify(4, 5));
  EXPECT_EQ(message_of([&] { reader.verify(0, 1); }), middle);
  at::set_num_threads(num_threads);
}

TEST_F(SeveralBlocks, AFileThatBecomesShorterOrIsMissingIsNamed) {
  CheckpointReader reader = this->reader();
  read(reader, 0, 10);  // opens the first
  std::filesystem::resize_file(folder_.path() / "first", 100);
  EXPECT_EQ(message_of([&] { read(reader, 0, 10); }),
            "cannot read " + (folder_.path() / "first").string() + ": it became shorter");
  std::filesystem::remove(folder_.path() / "second");
  EXPECT_EQ(message_of([&] { read(reader, kFirst, kFirst + 1); }),
            (folder_.path() / "second").string() + ": No such file or directory");
}

TEST_F(SeveralBlocks, NothingIsReadWhereNothingIsWanted) {
  CheckpointReader reader = this->reader();
  reader.read({});
  EXPECT_TRUE(read(reader, 7, 7).empty());
}

TEST_F(SeveralBlocks, FilesWithoutChecksumsAreReadAsTheyAre) {
  for (auto& [name, file] : index_.files) file.checksums.clear();
  damage("first", 12);  // 0 becomes 0x7e
  CheckpointReader reader = this->reader();
  std::vector<std::int32_t> expected = counted(0, kNumel);
  expected[0] = 0x7e;
  EXPECT_EQ(read(reader, 0, kNumel), expected);
  EXPECT_EQ(read(reader, kFirst - 2, kFirst + 2), counted(kFirst - 2, kFirst + 2));
}

}  // namespace
}  // namespace tessera

#include "comm/bandwidth/operations.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

using Sizes = std::vector<std::int64_t>;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

const std::vector<TestOperation> kAll = {
    TestOperation::kAllReduce, TestOperation::kAllGather, TestOperation::kReduceScatter, TestOperation::kBroadcast,
    TestOperation::kReduce,    TestOperation::kAllToAll,  TestOperation::kSendRecv};

TEST(TestOperations, AreFoundByTheirNamesAndNcclTestsNames) {
  EXPECT_EQ(test_operation_names().size(), kAll.size());
  for (TestOperation operation : kAll) {
    EXPECT_EQ(traits_of(operation).operation, operation);
    EXPECT_EQ(test_operation_named(traits_of(operation).name), operation);
  }
  EXPECT_EQ(test_operation_named("all-gather"), TestOperation::kAllGather);
  EXPECT_EQ(test_operation_named("all_reduce_perf"), TestOperation::kAllReduce);
  EXPECT_EQ(test_operation_named("alltoall"), TestOperation::kAllToAll);
  try {
    test_operation_named("all_redcue");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean all_reduce?"), std::string::npos) << error.what();
  }
}

TEST(Sizes, GrowByAFactorOrByAStep) {
  EXPECT_EQ(sizes_to_scan(8, 64, 1, 2), (Sizes{8, 16, 32, 64}));
  EXPECT_EQ(sizes_to_scan(8, 63, 1, 2), (Sizes{8, 16, 32}));
  EXPECT_EQ(sizes_to_scan(10, 30, 10, 0), (Sizes{10, 20, 30}));
  EXPECT_EQ(sizes_to_scan(10, 15, 10, 1), Sizes{10});
  EXPECT_EQ(sizes_to_scan(4 * kGiB, 4 * kGiB, 1, 2), Sizes{4 * kGiB});
  const std::int64_t huge = std::int64_t{1} << 62;
  EXPECT_EQ(sizes_to_scan(huge, huge, 1, 4), Sizes{huge});  // the next would overflow
}

TEST(Sizes, ThatCannotBeScannedAreRefused) {
  EXPECT_THROW(sizes_to_scan(64, 32, 1, 2), UsageError);
  EXPECT_THROW(sizes_to_scan(1, kGiB, 1, 0), UsageError);
  try {
    sizes_to_scan(64 << 20, 32 << 20, 1, 2);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "-b 64M is larger than -e 32M: the sizes go from -b up to -e; give both");
  }
}

TEST(MessageShape, CountsAsNcclTestsDoes) {
  const MessageShape whole = shape_of(TestOperation::kAllReduce, 1026, 4, 3);
  EXPECT_EQ(whole.bytes, 1024);
  EXPECT_EQ(whole.count, 256);
  EXPECT_EQ(whole.send_numel, 256);
  EXPECT_EQ(whole.receive_numel, 256);

  // 256 floats over 3 ranks: 85, cut to a multiple of 16 bytes: 84.
  const MessageShape gathered = shape_of(TestOperation::kAllGather, 1024, 4, 3);
  EXPECT_EQ(gathered.count, 84);
  EXPECT_EQ(gathered.bytes, 84 * 3 * 4);
  EXPECT_EQ(gathered.send_numel, 84);
  EXPECT_EQ(gathered.receive_numel, 84 * 3);
  const MessageShape scattered = shape_of(TestOperation::kReduceScatter, 1024, 4, 3);
  EXPECT_EQ(scattered.send_numel, 84 * 3);
  EXPECT_EQ(scattered.receive_numel, 84);
  const MessageShape exchanged = shape_of(TestOperation::kAllToAll, 1024, 8, 3);
  EXPECT_EQ(exchanged.count, 42);
  EXPECT_EQ(exchanged.send_numel, 42 * 3);
  EXPECT_EQ(exchanged.receive_numel, 42 * 3);
}

TEST(MessageShape, HasAnElementForEachRankAtLeast) {
  for (TestOperation operation : kAll) {
    for (std::int64_t item_bytes : {1, 2, 4, 8}) {
      for (int num_ranks : {1, 2, 3, 4}) {
        for (std::int64_t size = 1; size < 300; ++size) {
          const MessageShape shape = shape_of(operation, size, item_bytes, num_ranks);
          ASSERT_GE(shape.count, 1) << traits_of(operation).name << " " << size;
          ASSERT_GE(shape.send_numel, 1);
          ASSERT_GE(shape.receive_numel, 1);
          const std::int64_t least = item_bytes * (traits_of(operation).is_cut ? num_ranks : 1);
          ASSERT_LE(shape.bytes, std::max(size, least)) << traits_of(operation).name << " " << size;
        }
      }
    }
  }
  EXPECT_EQ(shape_of(TestOperation::kAllReduce, 3, 4, 2).bytes, 4);
  EXPECT_EQ(shape_of(TestOperation::kAllGather, 3, 4, 2).bytes, 8);
  EXPECT_EQ(shape_of(TestOperation::kAllGather, 24, 4, 2).bytes, 24);  // 3 floats per rank are less than 16 bytes
  EXPECT_EQ(shape_of(TestOperation::kAllGather, 56, 4, 2).bytes, 32);
}

TEST(MessageShape, SizesThatComeToTheSameAreOneRow) {
  EXPECT_EQ(without_repeats({1, 2, 3}, TestOperation::kAllReduce, 4, 2), Sizes{1});
  EXPECT_EQ(without_repeats({3, 4, 7, 8, 9, 12}, TestOperation::kAllReduce, 4, 2), (Sizes{3, 8, 12}));
  EXPECT_EQ(without_repeats({8, 16, 32, 64}, TestOperation::kAllGather, 4, 4), (Sizes{8, 32, 64}));
  EXPECT_EQ(without_repeats({8, 16, 32}, TestOperation::kAllReduce, 4, 4), (Sizes{8, 16, 32}));
}

TEST(BusFactor, IsNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(TestOperation::kAllReduce, 2), 1);
  EXPECT_DOUBLE_EQ(bus_factor(TestOperation::kAllReduce, 4), 1.5);
  for (TestOperation cut : {TestOperation::kAllGather, TestOperation::kReduceScatter, TestOperation::kAllToAll}) {
    EXPECT_DOUBLE_EQ(bus_factor(cut, 4), 0.75);
  }
  for (TestOperation whole : {TestOperation::kBroadcast, TestOperation::kReduce, TestOperation::kSendRecv}) {
    EXPECT_DOUBLE_EQ(bus_factor(whole, 4), 1);
  }
  for (TestOperation operation : kAll) EXPECT_EQ(bus_factor(operation, 1), 0);
}

TEST(AlgorithmBandwidth, IsInBillionsOfBytesASecond) {
  EXPECT_DOUBLE_EQ(algorithm_bandwidth(2'000'000'000, 0.5), 4);
  EXPECT_EQ(algorithm_bandwidth(1, 0), 0);
}

TEST(MemoryNeed, FourRanksOfFourGiBDoNotFit24GiB) {
  const MemoryNeed need{2, 4};
  EXPECT_EQ(need.of(4 * kGiB), 32 * kGiB + 4 * MemoryNeed::kWorkBytes);
  EXPECT_FALSE(need.fits(4 * kGiB, 24 * kGiB));
  const std::int64_t largest = need.largest_size(24 * kGiB);
  EXPECT_TRUE(need.fits(largest, 24 * kGiB));
  EXPECT_FALSE(need.fits(largest + (2 << 20), 24 * kGiB));
  EXPECT_EQ(need.largest_size(1 << 20), 0);
  EXPECT_FALSE((MemoryNeed{2, 1000}.fits(std::int64_t{1} << 62, 24 * kGiB)));
}

TEST(Verdict, HasAStatusForEachEnd) {
  const BandwidthTotals good{4, 21.3456, 0};
  EXPECT_EQ(judge(good, std::nullopt).status, ExitStatus::kOk);
  EXPECT_EQ(judge(good, 5).status, ExitStatus::kOk);
  EXPECT_EQ(judge(good, 21.3456).status, ExitStatus::kOk);
  const BandwidthVerdict low = judge(good, 25);
  EXPECT_EQ(low.status, ExitStatus::kLowBandwidth);
  EXPECT_EQ(low.message, "Bandwidth below threshold: 21.3456 GB/s, --min-busbw asks for 25");

  EXPECT_EQ(judge({4, std::nullopt, 0}, 5).status, ExitStatus::kNoBandwidth);
  EXPECT_EQ(judge({4, std::nullopt, 0}, std::nullopt).status, ExitStatus::kOk);
  EXPECT_EQ(judge({1, 0.0, 0}, 0).status, ExitStatus::kNoBandwidth);
  EXPECT_EQ(judge({1, 0.0, 0}, std::nullopt).status, ExitStatus::kOk);

  // Wrong data outweighs speed.
  EXPECT_EQ(judge({4, 21.0, 1}, std::nullopt).status, ExitStatus::kWrongData);
  EXPECT_EQ(judge({4, 21.0, 1}, 25).status, ExitStatus::kWrongData);
}

}  // namespace

}  // namespace tessera

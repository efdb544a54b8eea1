#include "comm/bandwidth/bandwidth.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <limits>

#include "comm/bandwidth/operations.h"
#include "core/text.h"

namespace tessera {
namespace {

constexpr std::int64_t kPeriod = TestPattern::kPeriod;
const std::vector<at::ScalarType> kTypes = {at::kFloat, at::kHalf, at::kBFloat16, at::kInt, at::kLong, at::kByte};
const std::vector<ReduceOp::RedOpType> kReductions = {ReduceOp::SUM, ReduceOp::AVG, ReduceOp::MAX, ReduceOp::MIN};

TEST(TestPattern, SumsStayExactInEveryTypeForAnyNumberOfRanks) {
  for (int num_ranks : {1, 2, 3, 17, 255, 256, 1000}) {
    const TestPattern pattern(num_ranks, at::kInt, at::kCPU, 7);
    for (std::int64_t i = 0; i < 2000; ++i) {
      int sum = 0;
      for (int rank = 0; rank < num_ranks; ++rank) sum += pattern.value(rank, i);
      ASSERT_LE(sum, 255) << num_ranks << " ranks, element " << i;
    }
  }
}

TEST(TestPattern, RanksRoundsAndPlacesDiffer) {
  const TestPattern pattern(4, at::kFloat, at::kCPU, 0), next(4, at::kFloat, at::kCPU, 1);
  EXPECT_FALSE(at::equal(pattern.of_rank(0), pattern.of_rank(1)));
  EXPECT_FALSE(at::equal(pattern.of_rank(0), next.of_rank(0)));
  EXPECT_EQ(pattern.value(0, 5), pattern.value(0, 5 + kPeriod));
}

TEST(CheckPeriodic, AcceptsWhatWasFilledAndCountsEveryWrongElement) {
  const TestPattern pattern(3, at::kHalf, at::kCPU, 2);
  const at::Tensor period = pattern.of_rank(1);
  for (std::int64_t numel : {std::int64_t{0}, std::int64_t{1}, kPeriod, 3 * kPeriod + 17, 40 * kPeriod + 5}) {
    at::Tensor buffer = at::empty({numel}, at::kHalf);
    fill_periodic(buffer, period, 12345);
    EXPECT_EQ(check_periodic(buffer, period, 12345, 3).num_wrong, 0) << numel;
    if (numel == 0) continue;
    for (std::int64_t spoilt : {std::int64_t{0}, numel / 2, numel - 1}) {
      at::Tensor copy = buffer.clone();
      copy.select(0, spoilt).add_(1);
      const Mismatch mismatch = check_periodic(copy, period, 12345, 3);
      EXPECT_EQ(mismatch.num_wrong, 1);
      EXPECT_EQ(mismatch.first_index, spoilt);
      EXPECT_EQ(mismatch.expected, pattern.value(1, spoilt + 12345));
      EXPECT_EQ(mismatch.found, mismatch.expected + 1);
    }
  }
}

TEST(CheckPeriodic, SeesDataAtTheWrongPlace) {
  const at::Tensor period = TestPattern(2, at::kInt, at::kCPU, 0).of_rank(0);
  at::Tensor buffer = at::empty({1 << 18}, at::kInt);
  for (std::int64_t shift : {1, 1024, 65536, 1 << 20}) {
    fill_periodic(buffer, period, shift);
    EXPECT_GT(check_periodic(buffer, period, 0, 2).num_wrong, buffer.numel() / 2) << shift;
  }
}

TEST(CheckPeriodic, AveragesAreMetWithinRoundingAndNanNever) {
  const TestPattern pattern(3, at::kFloat, at::kCPU, 0);
  const at::Tensor average = pattern.reduced(ReduceOp::AVG);
  at::Tensor buffer = average.to(at::kFloat);
  EXPECT_EQ(check_periodic(buffer, average, 0, 3).num_wrong, 0);
  buffer.select(0, 3).add_(1e-3);
  EXPECT_EQ(check_periodic(buffer, average, 0, 3).num_wrong, 1);
  buffer.select(0, 4).fill_(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(check_periodic(buffer, average, 0, 3).num_wrong, 2);
}

// All seven operations.
class BandwidthOperations : public testing::TestWithParam<std::string> {
 protected:
  BandwidthOperations() { options_.num_iterations = 2, options_.num_warmups = 1; }
  const TestOperationTraits& traits() const { return traits_of(test_operation_named(GetParam())); }

  BandwidthOptions options_;
};

TEST_P(BandwidthOperations, EveryTypeReductionAndRootIsRightOnOneToFourRanks) {
  options_.operation = traits().operation;
  for (int num_ranks : {1, 2, 3, 4}) {
    run_thread_ranks(num_ranks, {}, [&](World& world) {
      for (at::ScalarType type : kTypes) {
        for (ReduceOp::RedOpType reduction : kReductions) {
          const bool is_integer = c10::isIntegralType(type, false);
          if (reduction != ReduceOp::SUM && (!traits().reduces || (is_integer && reduction == ReduceOp::AVG))) continue;
          BandwidthOptions options = options_;
          options.type = type;
          options.reduce_op = reduction;
          options.root = num_ranks - 1;
          BandwidthTest test(world, options, 300'000);
          test.warm_up(300'000);
          for (std::int64_t size : {std::int64_t{1}, std::int64_t{300'000}}) {
            const BandwidthRow row = test.measure(size);
            EXPECT_EQ(row.out_of_place.num_wrong, 0) << GetParam() << " " << num_ranks << " " << size;
            EXPECT_TRUE(row.out_of_place.seconds.has_value());
            ASSERT_EQ(row.in_place.has_value(), traits().can_be_in_place);
            if (!row.in_place) continue;
            EXPECT_EQ(row.in_place->num_wrong, 0) << GetParam() << " " << num_ranks << " " << size;
          }
          EXPECT_EQ(test.totals().num_wrong, 0);
          EXPECT_EQ(judge(test.totals(), std::nullopt).status, ExitStatus::kOk);
        }
      }
    });
  }
}

TEST_P(BandwidthOperations, OneWrongElementOnOneRankIsEveryRanksVerdict) {
  options_.operation = traits().operation;
  options_.num_checks = 1;
  run_thread_ranks(3, {}, [&](World& world) {
    BandwidthOptions options = options_;
    if (world.rank() == 0) {  // also the root
      options.tamper = [](at::Tensor& result) { result.select(0, result.numel() / 2).add_(1); };
    }
    BandwidthTest test(world, options, 10'000);
    const BandwidthRow row = test.measure(10'000);
    EXPECT_EQ(row.out_of_place.num_wrong, 1) << GetParam();
    ASSERT_EQ(row.in_place.has_value(), traits().can_be_in_place) << GetParam();
    if (row.in_place) {
      EXPECT_EQ(row.in_place->num_wrong, 1) << GetParam();
    }
    EXPECT_EQ(judge(test.totals(), 0).status, ExitStatus::kWrongData);
  });
}

INSTANTIATE_TEST_SUITE_P(AllOperations, BandwidthOperations, testing::ValuesIn(test_operation_names()),
                         [](const auto& each) { return each.param; });

TEST(Bandwidth, WithoutIterationsNothingIsTimed) {
  run_thread_ranks(2, {}, [&](World& world) {
    BandwidthOptions options;
    options.num_iterations = 0;
    BandwidthTest test(world, options, 4096);
    const BandwidthRow row = test.measure(4096);
    EXPECT_FALSE(row.out_of_place.seconds.has_value());
    EXPECT_EQ(row.out_of_place.num_wrong, 0);
    EXPECT_FALSE(test.totals().average_bus_bandwidth.has_value());
  });
}

TEST(Bandwidth, TimesAndFormulasAreAlikeOnAllRanks) {
  std::vector<double> averages(3);
  run_thread_ranks(3, {}, [&](World& world) {
    BandwidthTest test(world, {}, 1 << 20);
    const BandwidthRow row = test.measure(1 << 20);
    EXPECT_DOUBLE_EQ(row.out_of_place.algorithm_bandwidth, (1 << 20) / *row.out_of_place.seconds / 1e9);
    EXPECT_DOUBLE_EQ(row.out_of_place.bus_bandwidth, row.out_of_place.algorithm_bandwidth * 4 / 3);
    const double average = (row.out_of_place.bus_bandwidth + row.in_place->bus_bandwidth) / 2;
    EXPECT_DOUBLE_EQ(*test.totals().average_bus_bandwidth, average);
    averages[static_cast<std::size_t>(world.rank())] = average;
  });
  EXPECT_EQ(averages[0], averages[1]);
  EXPECT_EQ(averages[0], averages[2]);
}

TEST(MemoryRefusal, IsTheSameOnAllRanksAndNamesTheNumbers) {
  std::vector<std::string> refusals(2);
  run_thread_ranks(2, {}, [&](World& world) {
    constexpr std::int64_t kGiB = std::int64_t{1} << 30;
    EXPECT_EQ(memory_refusal(world, {}, kGiB, 8 * kGiB), "");
    // Rank 1 sees less than rank 0.
    refusals[static_cast<std::size_t>(world.rank())] = memory_refusal(world, {}, 2 * kGiB, (10 - world.rank()) * kGiB);
  });
  EXPECT_EQ(refusals[0], refusals[1]);
  EXPECT_NE(refusals[0].find("2 ranks together need 12.1 GiB"), std::string::npos) << refusals[0];
  EXPECT_NE(refusals[0].find("9 GiB is free"), std::string::npos) << refusals[0];
  EXPECT_NE(refusals[0].find("the largest size that fits is -e 1361M"), std::string::npos) << refusals[0];
}

// The words of a row.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  for (const std::string& word : split(std::string(trim(line)), ' ')) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

TEST(Report, RowsHaveNcclTestsColumns) {
  BandwidthOptions options;
  BandwidthRow row{{4096, 1024, 1024, 1024}, {1.234567e-3, 2.5, 3.75, 0}, Measurement{0.5, 100, 150.256, 7}};
  EXPECT_EQ(words_of(report_row(row, options)),
            (std::vector<std::string>{"4096", "1024", "float", "sum", "-1", "1234.6", "2.50", "3.75", "0", "500000",
                                      "100.00", "150.26", "7"}));
  options.operation = TestOperation::kBroadcast;
  options.root = 2;
  row.in_place.reset();
  row.out_of_place = {};
  EXPECT_EQ(words_of(report_row(row, options)),
            (std::vector<std::string>{"4096", "1024", "float", "none", "2", "N/A", "N/A", "N/A", "N/A", "N/A", "N/A",
                                      "N/A", "N/A"}));
}

TEST(Report, TheColumnsStandUnderTheirTitles) {
  const std::string header = report_header({2, 8, 8, "2(factor)", "mpi", "CPUs", {"a", "b"}, {}}, {});
  std::vector<std::string> lines = split(header, '\n');
  ASSERT_GE(lines.size(), 3U);
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) EXPECT_EQ(lines[i].substr(0, 1), "#") << lines[i];
  const std::string units = lines[lines.size() - 2], titles = lines[lines.size() - 3];
  const BandwidthRow row{{8, 2, 2, 2}, {1e-6, 1, 1, 0}, Measurement{1e-6, 1, 1, 0}};
  EXPECT_EQ(report_row(row, {}).size() - 1, titles.size());
  EXPECT_EQ(titles.size(), units.size());
}

TEST(Report, NamesTheFlagsThatChangeNothing) {
  const ReportHeader header{2, 8, 8, "2(factor)", "mpi", "CPUs", {"a", "b"}, {"-p", "-G"}};
  EXPECT_NE(report_header(header, {}).find("\n# -p, -G change nothing here\n"), std::string::npos);
  EXPECT_EQ(report_header({}, {}).find("change"), std::string::npos);
}

TEST(Report, TheLastLinesAreNcclTests) {
  EXPECT_EQ(report_footer({2, 21.34560, 0}, true), "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 21.3456\n");
  EXPECT_EQ(report_footer({2, 1.5, 3}, true), "# Out of bounds values : 3 FAILED\n# Avg bus bandwidth    : 1.5\n");
  EXPECT_EQ(report_footer({2, std::nullopt, 0}, false),
            "# Out of bounds values : N/A (-c 0)\n# Avg bus bandwidth    : N/A\n");
}

}  // namespace
}  // namespace tessera

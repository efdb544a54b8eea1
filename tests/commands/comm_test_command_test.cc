// `tessera comm-test` as users start it: real ranks under mpirun, the table read back line by line.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>

#include "comm/bandwidth/operations.h"
#include "core/text.h"
#include "monitor/host_info.h"
#include "support/program.h"

namespace tessera {
namespace {

struct Cells {
  double time_us = 0, algorithm_bandwidth = 0, bus_bandwidth = 0;
  std::string wrong;
};

struct Row {
  std::int64_t bytes = 0, count = 0;
  std::string type, reduction;
  int root = 0;
  std::optional<Cells> out_of_place, in_place;  // no value: N/A
};

struct Table {
  std::vector<Row> rows;
  std::string average, out_of_bounds;
};

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  for (const std::string& word : split(line, ' ')) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

std::optional<Cells> read_cells(const std::vector<std::string>& words, std::size_t first) {
  if (words[first] == "N/A") return std::nullopt;
  const auto number = [&](std::size_t i) { return parse_real(words[first + i]).value_or(-1); };
  return Cells{number(0), number(1), number(2), words[first + 3]};
}

Table read_table(const std::string& output) {
  Table table;
  bool in_rows = false;
  for (const std::string& line : split(output, '\n')) {
    const std::vector<std::string> words = words_of(line);
    if (line.starts_with("# Out of bounds values : ")) table.out_of_bounds = line.substr(25);
    if (line.starts_with("# Avg bus bandwidth    : ")) table.average = line.substr(25);
    if (line.starts_with("#")) {
      in_rows = contains(line, "(elements)");
      continue;
    }
    if (!in_rows) continue;
    EXPECT_EQ(words.size(), 13U) << line;
    if (words.size() != 13U) continue;
    Row row;
    row.bytes = parse_integer(words[0]).value_or(-1);
    row.count = parse_integer(words[1]).value_or(-1);
    row.type = words[2];
    row.reduction = words[3];
    row.root = static_cast<int>(parse_integer(words[4]).value_or(-99));
    row.out_of_place = read_cells(words, 5);
    row.in_place = read_cells(words, 9);
    table.rows.push_back(row);
  }
  return table;
}

// How the columns must relate, as far as their two decimals allow.
void check_cells(const Cells& cells, const Row& row, double factor) {
  EXPECT_GT(cells.time_us, 0);
  const double expected = static_cast<double>(row.bytes) / cells.time_us / 1e3;
  EXPECT_NEAR(cells.algorithm_bandwidth, expected, 0.006 + 0.01 * expected);
  EXPECT_NEAR(cells.bus_bandwidth, cells.algorithm_bandwidth * factor, 0.014);
  EXPECT_EQ(cells.wrong, "0");
}

class CommTestOperations : public testing::TestWithParam<std::string> {};

TEST_P(CommTestOperations, PrintsNcclTestsTableOnOneToFourRanks) {
  const TestOperationTraits& traits = traits_of(test_operation_named(GetParam()));
  for (int num_ranks = 1; num_ranks <= 4; ++num_ranks) {
    SCOPED_TRACE(fmt::format("{} on {} ranks", GetParam(), num_ranks));
    const Ended ended = run_tessera(fmt::format("comm-test {} -b 1K -e 1M -f 32 -n 3 -w 1", GetParam()), num_ranks);
    ASSERT_EQ(ended.status, 0) << ended.output;
    const Table table = read_table(ended.output);
    ASSERT_EQ(table.rows.size(), 3U) << ended.output;
    double sum = 0;
    int num_measured = 0;
    const double factor = bus_factor(traits.operation, num_ranks);
    for (std::size_t i = 0; i < 3; ++i) {
      const Row& row = table.rows[i];
      const MessageShape shape = shape_of(traits.operation, std::int64_t{1024} << (5 * i), 4, num_ranks);
      EXPECT_EQ(row.bytes, shape.bytes);
      EXPECT_EQ(row.count, shape.count);
      EXPECT_EQ(row.type, "float");
      EXPECT_EQ(row.reduction, traits.reduces ? "sum" : "none");
      EXPECT_EQ(row.root, traits.has_root ? 0 : -1);
      ASSERT_TRUE(row.out_of_place.has_value()) << ended.output;
      ASSERT_EQ(row.in_place.has_value(), traits.can_be_in_place) << ended.output;
      for (const auto& cells : {row.out_of_place, row.in_place}) {
        if (!cells) continue;
        check_cells(*cells, row, factor);
        sum += cells->bus_bandwidth;
        ++num_measured;
      }
    }
    EXPECT_EQ(table.out_of_bounds, "0 OK");
    EXPECT_NEAR(parse_real(table.average).value_or(-1), sum / num_measured, 0.006) << table.average;
    EXPECT_LT(ended.output.find("# Out of bounds"), ended.output.find("# Avg bus bandwidth"));
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, CommTestOperations, testing::ValuesIn(test_operation_names()),
                         [](const auto& each) { return each.param; });

TEST(CommTest, TakesEveryTypeReductionAndRoot) {
  for (const char* type : {"float", "half", "bfloat16", "int32", "int64", "uint8"}) {
    const Ended ended = run_tessera(fmt::format("comm-test reduce -b 64K -e 64K -n 2 -d {} -o max -r 2", type), 3);
    EXPECT_EQ(ended.status, 0) << ended.output;
    const Table table = read_table(ended.output);
    ASSERT_EQ(table.rows.size(), 1U) << ended.output;
    EXPECT_EQ(table.rows[0].type, type);
    EXPECT_EQ(table.rows[0].reduction, "max");
    EXPECT_EQ(table.rows[0].root, 2);
    EXPECT_EQ(table.out_of_bounds, "0 OK");
  }
  for (const char* reduction : {"sum", "avg", "min"}) {
    const Ended ended = run_tessera(
        fmt::format("comm-test --operation reduce_scatter -b 96K -e 96K -n 2 -d bfloat16 -o {} -z 1 -a 3", reduction),
        3);
    EXPECT_EQ(ended.status, 0) << ended.output;
    EXPECT_EQ(read_table(ended.output).out_of_bounds, "0 OK") << ended.output;
  }
}

TEST(CommTest, WithoutCheckNothingIsSaidOfTheData) {
  const Ended ended = run_tessera("comm-test -b 64K -e 128K -i 32K -n 2 -c 0 -g 1", 2);
  EXPECT_EQ(ended.status, 0) << ended.output;
  const Table table = read_table(ended.output);
  ASSERT_EQ(table.rows.size(), 3U) << ended.output;
  for (const Row& row : table.rows) {
    ASSERT_TRUE(row.out_of_place.has_value()) << ended.output;
    EXPECT_EQ(row.out_of_place->wrong, "N/A");
  }
  EXPECT_EQ(table.out_of_bounds, "N/A (-c 0)");
}

TEST(CommTest, OnlyRankZeroPrints) {
  const Ended ended = run_tessera("comm-test -b 64K -e 64K -n 2 --min-busbw 0", 4);
  EXPECT_EQ(ended.status, 0) << ended.output;
  for (const char* part : {"# Avg", "Measured"}) {
    EXPECT_TRUE(contains(ended.output, part)) << ended.output;
    EXPECT_EQ(ended.output.find(part), ended.output.rfind(part)) << ended.output;
  }
}

TEST(BandwidthGate, PassesAtOrAboveTheThreshold) {
  const Ended ended = run_tessera("comm-test -b 1M -e 1M -n 5 --min-busbw 0.0001", 2);
  EXPECT_EQ(ended.status, 0) << ended.output;
  const std::string average = read_table(ended.output).average;
  EXPECT_TRUE(contains(ended.output, fmt::format("\nMeasured AllReduce BW: {} GB/s\n", average))) << ended.output;
  EXPECT_FALSE(contains(ended.output, "Bandwidth below threshold"));
  EXPECT_TRUE(contains(run_tessera("comm-test all_gather -b 1M -e 1M -n 5 --min-busbw 0.0001", 2).output,
                       "Measured AllGather BW: "));
}

TEST(BandwidthGate, EndsWith46BelowTheThreshold) {
  const Ended ended = run_tessera("comm-test -b 1M -e 1M -n 5 --min-busbw 100000", 3);
  EXPECT_EQ(ended.status, 46) << ended.output;
  EXPECT_TRUE(contains(ended.output, "Measured AllReduce BW: ")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "Bandwidth below threshold")) << ended.output;
}

TEST(BandwidthGate, EndsWith44WithoutAFigure) {
  const Ended untimed = run_tessera("comm-test -b 1M -e 1M -n 0 --min-busbw 1", 2);
  EXPECT_EQ(untimed.status, 44) << untimed.output;
  EXPECT_TRUE(contains(untimed.output, "no iteration was timed")) << untimed.output;
  const Ended alone = run_tessera("comm-test -b 1M -e 1M --min-busbw 1");
  EXPECT_EQ(alone.status, 44) << alone.output;
  EXPECT_TRUE(contains(alone.output, "one rank moves nothing")) << alone.output;
  EXPECT_EQ(run_tessera("comm-test -b 1M -e 1M").status, 0);  // no figure was required
}

TEST(BandwidthGate, EndsWith44WhereTheFigureCannotBeWritten) {
  const Ended gated = run_shell(fmt::format("{} comm-test -b 1K -e 1K -n 1 --min-busbw 0 > /dev/full", binary()));
  EXPECT_EQ(gated.status, 44) << gated.output;
  EXPECT_TRUE(contains(gated.output, "No bandwidth figure: cannot write to standard output: No space left on device"))
      << gated.output;
}

TEST(LostOutput, IsAFailure) {
  for (const char* arguments : {"comm-test -b 1K -e 1K -n 1", "comm-test --help", "comm-test --help=markdown",
                                "comm-test --print_config", "env", "env --json", "env --help", "launch --help"}) {
    const Ended ended = run_shell(fmt::format("{} {} > /dev/full", binary(), arguments));
    EXPECT_EQ(ended.status, 1) << arguments << "\n" << ended.output;
    EXPECT_TRUE(contains(ended.output, "cannot write to standard output: No space left on device")) << arguments << "\n"
                                                                                                    << ended.output;
  }
}

TEST(SmallSizes, AreRoundedUpToOneElementARank) {
  const Ended reduced = run_tessera("comm-test -b 1 -e 3 -i 1 -n 2 --min-busbw 0", 2);
  EXPECT_EQ(reduced.status, 0) << reduced.output;
  const Table one = read_table(reduced.output);
  ASSERT_EQ(one.rows.size(), 1U) << reduced.output;
  EXPECT_EQ(one.rows[0].bytes, 4);
  EXPECT_GT(parse_real(one.average).value_or(0), 0) << reduced.output;
  const Ended gathered = run_tessera("comm-test all_gather -b 1 -e 64 -f 2 -n 2", 3);
  EXPECT_EQ(gathered.status, 0) << gathered.output;
  std::vector<std::int64_t> sizes;
  for (const Row& row : read_table(gathered.output).rows) sizes.push_back(row.bytes);
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{12, 24, 48})) << gathered.output;
}

TEST(FlagsOfNcclTests, AreTakenWhereTheyAskForNothingElse) {
  const Ended ended =
      run_tessera("comm-test -b 1K -e 1K -n 1 -p 1 -m 1 -G 0 -C 0 -y 0 -T 30 -R 1 -n 2 -t 1 -g 1 -a 1 -z 0");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "\n# -p, -m, -G, -C, -y, -R, -T change nothing here\n")) << ended.output;
  EXPECT_TRUE(contains(ended.output, " iters: 2 ")) << ended.output;  // the last -n wins
  EXPECT_EQ(read_table(ended.output).rows.size(), 1U) << ended.output;
  EXPECT_FALSE(contains(run_tessera("comm-test -b 1K -e 1K -n 1").output, "nothing here"));
}

TEST(DataCheck, SpoiltMessagesEndWith45) {
  for (const char* operation : {"all_reduce", "sendrecv"}) {
    // One node per rank: within a node, sums go through shared memory.
    const Ended ended =
        run_tessera(fmt::format("comm-test {} -b 1M -e 1M -n 1 --min-busbw 100000 --ranks_per_node 1", operation), 2,
                    fmt::format("-x LD_PRELOAD={}", TESSERA_SPOILER));
    EXPECT_EQ(ended.status, 45) << ended.output;
    EXPECT_TRUE(contains(ended.output, "Wrong data: ")) << ended.output;
    EXPECT_TRUE(contains(ended.output, " FAILED\n")) << ended.output;
    EXPECT_TRUE(contains(ended.output, " instead of ")) << ended.output;
  }
}

TEST(MemoryCheck, BuffersLargerThanTheMemoryAreRefusedAtOnce) {
  const auto usable = read_memory_info().usable_bytes();
  ASSERT_TRUE(usable.has_value());
  // Four ranks with two buffers of 4G each need 32 GiB; if the memory holds that, take more than it holds.
  const std::int64_t gib = *usable < (std::int64_t{35} << 30) ? 4 : (*usable >> 30) / 4;
  const Ended ended = run_tessera(fmt::format("comm-test -b {}G -e {}G -f 2 --min-busbw 5", gib, gib), 4);
  EXPECT_EQ(ended.status, 44) << ended.output;
  EXPECT_LT(ended.seconds.count(), 20) << ended.output;
  EXPECT_TRUE(contains(ended.output, fmt::format("-e {}G: the buffers do not fit in the memory", gib))) << ended.output;
  EXPECT_TRUE(contains(ended.output, "4 ranks together need ")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "the largest size that fits is -e ")) << ended.output;
  EXPECT_TRUE(read_table(ended.output).rows.empty());
}

struct Refusal {
  const char* arguments;
  const char* message;
};

TEST(BadArguments, AreRefusedWithTheReason) {
  const Refusal refusals[] = {
      {"-b 64M -e 32M", "-b 64M is larger than -e 32M"},
      {"-b 64M", "-b 64M is larger than -e 32M"},
      {"-b much", "-b much (command line): expected a size such as 512K or 4G, at least 1"},
      {"-b -4", "-b -4 (command line): expected a size"},
      {"-b 0", "-b 0 (command line): expected a size such as 512K or 4G, at least 1"},
      {"-e 4X", "-e 4X (command line): expected a size"},
      {"-m 4", "-m 4: Tessera does not aggregate calls; give 1"},
      {"-G 1", "-G 1: Tessera does not capture calls in CUDA graphs; give 0"},
      {"-C 1", "-C 1: Tessera reports the time of the whole call; give 0"},
      {"-y 1", "-y 1: Tessera does not use the default stream; give 0"},
      {"-R 2", "-R 2: Tessera has no symmetric buffers; give 0 or 1"},
      {"-p 2", "-p 2: "},
      {"-n 3 --iters 4", "--iters=4 (command line); give one"},
      {"-g 2", "a rank of Tessera has one GPU"},
      {"-t 2", "a rank of Tessera is a process"},
      {"-f 2 -i 1M", "-i and -f are both given"},
      {"-i 1 -b 1 -e 1G", "more than 100000 sizes"},
      {"-o avg -d int32", "integers have no exact average"},
      {"-o prod", "-o prod (command line): expected one of sum, avg, max, min"},
      {"-d double", "-d double (command line): expected one of float, "},
      {"-n -1", "-n -1 (command line): expected a whole number from 0 to "},
      {"all_redcue", "did you mean all_reduce?"},
      {"all_reduce again", "unexpected word 'again'"},
      {"all_gather --operation reduce", "name two operations"},
      {"--min-buswb 5", "did you mean --min-busbw?"},
      {"--warmup 5", "did you mean --warmup_iters?"},
      {"--min-busbw fast", "--min-busbw=fast (command line): expected a number of at least 0"},
      {"broadcast -r 1", "the ranks are 0 to 0"},
  };
  for (const Refusal& refusal : refusals) {
    const Ended ended = run_tessera(fmt::format("comm-test {}", refusal.arguments));
    EXPECT_EQ(ended.status, 2) << refusal.arguments << "\n" << ended.output;
    EXPECT_TRUE(contains(ended.output, refusal.message)) << refusal.arguments << "\n" << ended.output;
  }
}

TEST(BadArguments, ThatDifferBetweenRanksAreNamed) {
  const Ended ended = run_tessera(fmt::format("comm-test -b 1M -e 1M : -np 1 {} comm-test -b 2M -e 2M", binary()), 1);
  EXPECT_EQ(ended.status, 42) << ended.output;
  EXPECT_TRUE(contains(ended.output, "has maxbytes 2M, rank 0")) << ended.output;
}

}  // namespace
}  // namespace tessera

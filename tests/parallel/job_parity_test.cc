// Every model gives the same losses in every row of the table, with and without offload: bit for bit at the same number
// of ranks and accumulation mode; on another number of ranks with the same global batch, but for rounding.
//
// All models x ranks x types x micro-steps take minutes. A plain run leaves some of the last three out, never a row;
// TESSERA_TEST_WHOLE_TABLE=1 leaves out nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "parallel/jobs.h"

namespace tessera {
namespace {

bool wants_whole_table() {
  const char* value = std::getenv("TESSERA_TEST_WHOLE_TABLE");
  return value != nullptr && std::string(value) == "1";
}

// Rows that add micro-steps before the reduction, and rows that add reduced shards: equal within a kind.
struct Expected {
  std::optional<Trained> of_whole, of_split;

  std::optional<Trained>& of(const Training& how) {
    return how.num_micro_steps > 1 && how.row.placement().gradients_split ? of_split : of_whole;
  }
};

std::vector<Row> all_rows(int num_ranks) {
  std::vector<Row> rows = rows_of_table(num_ranks);
  for (const Row& row : offloaded_rows(num_ranks)) rows.push_back(row);
  return rows;
}

void expect_same_bits_in_every_row(const NamedJob& job, const ThreadRanks& ranks, at::ScalarType type,
                                   int num_micro_steps) {
  Expected expected;
  Training how = job.how;
  how.type = type;
  how.num_micro_steps = num_micro_steps;
  for (const Row& row : all_rows(ranks.num_ranks)) {
    how.row = row;
    // Whether a thread of its own makes the offloaded updates.
    how.host_updates = num_micro_steps > 1 ? HostUpdates::kInBackground : HostUpdates::kAtOnce;
    Trained found = train_on_threads(ranks, job.make, how);
    const std::string what = fmt::format("{}, {} micro-steps, {}", row.name(), num_micro_steps, c10::toString(type));
    std::optional<Trained>& first = expected.of(how);
    if (first) {
      expect_same_bits(found, *first, what);
    } else {
      expect_learnt(found, what);
      first = std::move(found);
    }
  }
  if (expected.of_split && type == at::kFloat) {
    expect_close(expected.of_split->losses, expected.of_whole->losses, 1e-6, "the two ways of accumulation");
  }
}

struct Kind {
  at::ScalarType type;
  int num_micro_steps;
};

struct ParityCase {
  NamedJob (*job)();
  ThreadRanks ranks;
  Kind kind;
};

std::vector<ParityCase> parity_cases() {
  constexpr Kind kinds[] = {{at::kFloat, 1}, {at::kBFloat16, 1}, {at::kFloat, 4}, {at::kBFloat16, 4}};
  constexpr ThreadRanks ranks[] = {{1}, {2}, {3}, {4}, {4, 2}};
  constexpr bool plain_run[5][4] = {{true, false, false, false},
                                    {true, false, true, false},
                                    {true, false, false, true},
                                    {true, false, false, false},
                                    {true, true, false, false}};
  std::vector<ParityCase> cases;
  for (const auto job : {&odd_job, &bloom_job, &gpt_job, &resnet_job}) {
    for (std::size_t i = 0; i < 5; ++i) {
      for (std::size_t k = 0; k < 4; ++k) {
        if (plain_run[i][k] || wants_whole_table()) cases.push_back({job, ranks[i], kinds[k]});
      }
    }
  }
  return cases;
}

class JobParity : public testing::TestWithParam<ParityCase> {};

TEST_P(JobParity, EveryRowGivesTheSameBits) {
  const ParityCase& tested = GetParam();
  expect_same_bits_in_every_row(tested.job(), tested.ranks, tested.kind.type, tested.kind.num_micro_steps);
}

INSTANTIATE_TEST_SUITE_P(All, JobParity, testing::ValuesIn(parity_cases()), [](const auto& tested) {
  const ParityCase& c = tested.param;
  return fmt::format("{}_{}{}_ranks_{}_x{}", c.job().name, c.ranks.num_ranks,
                     c.ranks.ranks_per_node > 0 ? "_in_pairs" : "", c10::toString(c.kind.type), c.kind.num_micro_steps);
});

// The same global batch on any number of ranks. Of the batch norms those that use their running statistics: the others
// see one rank's images, in PyTorch as here.
TEST(JobParityAcrossRanks, TheNumberOfRanksChangesOnlyRounding) {
  for (const NamedJob& job : {odd_job(), bloom_job(), gpt_job(), frozen_resnet_job()}) {
    for (const int num_micro_steps : {1, 4}) {
      Training how = job.how;
      how.num_micro_steps = num_micro_steps;
      how.row = {"single"};
      const Trained one = train_on_threads({1}, job.make, how);
      how.row = {"full_shard"};
      for (const ThreadRanks& ranks : {ThreadRanks{2}, ThreadRanks{3}, ThreadRanks{4}, ThreadRanks{4, 2}}) {
        const Trained many = train_on_threads(ranks, job.make, how);
        expect_close(many.losses, one.losses, 1e-5,
                     fmt::format("{}, {} micro-steps, {} ranks", job.name, num_micro_steps, ranks.num_ranks));
      }
    }
  }
}

}  // namespace
}  // namespace tessera

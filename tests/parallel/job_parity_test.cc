// Every model gives the same losses in every row of the table, with and without offload: bit for bit at the same number
// of ranks and accumulation mode; except for rounding on another number of ranks with the same global batch.
//
// All models x ranks x types x micro-steps take minutes. A plain run leaves some of the last three out, never a row;
// TESSERA_TEST_EVERYTHING=1 leaves out nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "parallel/jobs.h"

namespace tessera {
namespace {

bool wants_whole_table() {
  const char* value = std::getenv("TESSERA_TEST_EVERYTHING");
  return value != nullptr && std::string(value) == "1";
}

// Rows that add micro-steps before the reduction, and rows that add reduced shards: each kind has equal results.
struct Expected {
  std::optional<Trained> of_whole, of_split;

  std::optional<Trained>& of(const Training& how) {
    return how.num_micro_steps > 1 && how.row.placement().gradients.is_split() ? of_split : of_whole;
  }
};

void expect_same_bits_in_every_row(const NamedJob& job, const ThreadRanks& ranks, const std::vector<Row>& rows,
                                   at::ScalarType type, int num_micro_steps) {
  Expected expected;
  Training how = job.how;
  how.type = type;
  how.num_micro_steps = num_micro_steps;
  for (const Row& row : rows) {
    how.row = row;
    // Whether a separate thread makes the offloaded updates.
    how.host_updates = num_micro_steps > 1 ? HostUpdates::kInBackground : HostUpdates::kAtOnce;
    Trained found = train_on_threads(ranks, job.make, how);
    const std::string what = fmt::format("{}, {} micro-steps, {}", row.name(), num_micro_steps, c10::toString(type));
    std::optional<Trained>& first = expected.of(how);
    if (first) {
      expect_same_bits(found, *first, what);
    } else {
      if (how.num_steps >= 20) expect_learnt(found, what);
      first = std::move(found);
    }
  }
  if (expected.of_split && type == at::kFloat) {
    expect_close(expected.of_split->losses, expected.of_whole->losses, 1e-6, "the two ways of accumulation");
  }
}

enum class Rows { kNone, kPlain, kOffloadedToo };

struct Kind {
  at::ScalarType type;
  int num_micro_steps;
};

struct ParityCase {
  NamedJob (*job)();
  ThreadRanks ranks;
  Kind kind;
  Rows rows;

  std::string name() const {
    return fmt::format("{}_{}_ranks{}_{}_x{}", job().name, ranks.num_ranks, ranks.ranks_per_node > 0 ? "_in_pairs" : "",
                       c10::toString(kind.type), kind.num_micro_steps);
  }
};
void PrintTo(const ParityCase& c, std::ostream* out) {
  *out << c.name();
}

std::vector<ParityCase> parity_cases() {
  constexpr Kind kinds[] = {{at::kFloat, 1}, {at::kBFloat16, 1}, {at::kFloat, 4}, {at::kBFloat16, 4}};
  constexpr ThreadRanks ranks[] = {{1}, {2}, {3}, {4}, {4, 2}};
  // Rows of a plain run, by ranks and kind. (offload_test.cc covers the odd model's offload.)
  constexpr Rows kNo = Rows::kNone, kYes = Rows::kPlain, kAll = Rows::kOffloadedToo;
  constexpr Rows plain_run[5][4] = {{kYes, kNo, kNo, kNo},
                                    {kAll, kNo, kYes, kNo},
                                    {kYes, kNo, kNo, kNo},
                                    {kYes, kNo, kNo, kNo},
                                    {kNo, kYes, kNo, kNo}};
  std::vector<ParityCase> cases;
  for (const auto job : {&odd_job, &bloom_job, &gpt_job, &llama_job, &gemma3_job, &resnet_job}) {
    for (std::size_t i = 0; i < 5; ++i) {
      for (std::size_t k = 0; k < 4; ++k) {
        const Rows rows = wants_whole_table() ? Rows::kOffloadedToo : plain_run[i][k];
        if (rows != Rows::kNone) cases.push_back({job, ranks[i], kinds[k], rows});
      }
    }
  }
  if (!wants_whole_table()) cases.push_back({&odd_job, {2}, {at::kBFloat16, 4}, Rows::kPlain});
  return cases;
}

class JobParity : public testing::TestWithParam<ParityCase> {};

TEST_P(JobParity, EveryRowGivesTheSameBits) {
  const ParityCase& tested = GetParam();
  std::vector<Row> rows = rows_of_table(tested.ranks.num_ranks);
  if (tested.rows == Rows::kOffloadedToo) {
    for (const Row& row : offloaded_rows(tested.ranks.num_ranks)) rows.push_back(row);
  }
  expect_same_bits_in_every_row(tested.job(), tested.ranks, rows, tested.kind.type, tested.kind.num_micro_steps);
}

INSTANTIATE_TEST_SUITE_P(All, JobParity, testing::ValuesIn(parity_cases()),
                         [](const auto& tested) { return tested.param.name(); });

// 25 million parameters: 3 updates, and only the two rows that differ most.
TEST(JobParityOfResNet50, EveryRowGivesTheSameBits) {
  const std::vector<Row> two = {{"ddp"}, {"full_shard"}};
  expect_same_bits_in_every_row(resnet50_job(), {2}, wants_whole_table() ? rows_of_table(2) : two, at::kFloat, 1);
}

// The same global batch on any number of ranks. Batch norms use their running statistics: otherwise they would see one
// rank's images, in PyTorch as here.
class JobParityAcrossRanks : public testing::TestWithParam<std::string> {};

TEST_P(JobParityAcrossRanks, TheNumberOfRanksChangesOnlyRounding) {
  const std::vector<NamedJob> jobs = {odd_job(),   bloom_job(),  gpt_job(),
                                      llama_job(), gemma3_job(), frozen_resnet_job()};
  const NamedJob job = *std::find_if(jobs.begin(), jobs.end(), [](const auto& j) { return j.name == GetParam(); });
  for (const int num_micro_steps : {1, 4}) {
    Training how = job.how;
    how.num_micro_steps = num_micro_steps;
    how.row = {"single"};
    const Trained one = train_on_threads({1}, job.make, how);
    how.row = {"full_shard"};
    for (const ThreadRanks& ranks : {ThreadRanks{2}, ThreadRanks{3}, ThreadRanks{4}, ThreadRanks{4, 2}}) {
      if (num_micro_steps > 1 && ranks.num_ranks != 2 && !wants_whole_table()) continue;
      const Trained many = train_on_threads(ranks, job.make, how);
      expect_close(many.losses, one.losses, 1e-5,
                   fmt::format("{}, {} micro-steps, {} ranks", job.name, num_micro_steps, ranks.num_ranks));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, JobParityAcrossRanks,
                         testing::Values("odd", "bloom", "gpt", "llama", "gemma3", "frozen_resnet"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace tessera

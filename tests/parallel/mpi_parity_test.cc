// Ranks that are processes give what ranks that are threads give, in every row of the table. Under mpirun or `tessera
// launch`, with any number of ranks from 2 to 4; --ranks_per_node N pretends that each node has N.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <charconv>
#include <string_view>

#include "parallel/jobs.h"

namespace tessera {
namespace {

// One World per process.
std::unique_ptr<World> world;
int ranks_per_node = 0;

// Compares all rows of one accumulation mode with the first, and that one, on rank 0, with threads.
void expect_bits_of_threads(const NamedJob& job, const std::vector<Row>& rows, at::ScalarType type,
                            int num_micro_steps) {
  Training how = job.how;
  how.type = type;
  how.num_micro_steps = num_micro_steps;
  Trained first;
  for (const Row& row : rows) {
    how.row = row;
    const std::string what =
        fmt::format("{}, {}, {} micro-steps, {}", job.name, row.name(), num_micro_steps, c10::toString(type));
    Trained found = train(*world, *job.make(world->rank(), world->size()), how);
    if (!first.losses.empty()) {
      expect_same_bits(found, first, what);
      continue;
    }
    first = std::move(found);
    expect_learnt(first, what);
    if (world->rank() != 0) continue;
    expect_same_bits(first, train_on_threads({world->size(), ranks_per_node}, job.make, how), what + ", threads");
  }
}

// The running commentary of one rank is enough; failures of the others show.
class FailuresOnly : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed()) fmt::print(stderr, "rank {}: {}\n", world->rank(), result.message());
  }
};

TEST(MpiParity, EveryRowGivesTheBitsOfThreadRanks) {
  for (const NamedJob& job : all_jobs()) expect_bits_of_threads(job, rows_of_table(world->size()), at::kFloat, 1);
}

TEST(MpiParity, SoDoesEveryRowWithOffloadInBf16) {
  std::vector<Row> rows = rows_of_table(world->size());
  for (const Row& row : offloaded_rows(world->size())) rows.push_back(row);
  expect_bits_of_threads(odd_job(), rows, at::kBFloat16, 1);
}

TEST(MpiParity, SoDoesEachWayOfAccumulation) {
  std::vector<Row> whole, split;
  for (const Row& row : rows_of_table(world->size())) {
    (row.placement().gradients.is_split() ? split : whole).push_back(row);
  }
  expect_bits_of_threads(odd_job(), whole, at::kFloat, 4);
  expect_bits_of_threads(odd_job(), split, at::kFloat, 4);
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  tessera::WorldOptions options;
  options.backend = "mpi";
  options.comm_timeout = std::chrono::seconds(120);
  options.banner = false;
  if (argc == 3 && std::string_view(argv[1]) == "--ranks_per_node") {
    const std::string_view number = argv[2];
    std::from_chars(number.data(), number.data() + number.size(), tessera::ranks_per_node);
  }
  options.ranks_per_node = tessera::ranks_per_node;
  tessera::world = tessera::World::create(options);
  if (tessera::world->rank() != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new tessera::FailuresOnly);  // gtest owns it
  }
  const int status = RUN_ALL_TESTS();
  tessera::world.reset();
  return status;
}

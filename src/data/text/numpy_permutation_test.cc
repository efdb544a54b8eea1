#include "data/text/numpy_permutation.h"

#include <gtest/gtest.h>

#include "core/json.h"
#include "support/row_hash.h"
#include "support/squad_sample.h"

namespace tessera {
namespace {

TEST(Subset, ShuffledRowsAreThoseOfDatasetsForEverySizeAndSeed) {
  const Json references = read_json_file(squad_sample("subsets.json"));
  ASSERT_GT(references["cases"].size(), 100U);
  for (const Json& c : references["cases"]) {
    const auto size = c[0].get<std::int64_t>(), count = c[2].get<std::int64_t>();
    const Subset subset{count, true, std::stoull(c[1].get<std::string>())};
    const std::vector<std::int64_t> rows = rows_of(subset, size);
    EXPECT_EQ(std::ssize(rows), count);
    EXPECT_EQ(hash_of_numbers<std::int64_t>(rows), c[3].get<std::string>()) << size << " rows, seed " << subset.seed;
  }
  EXPECT_EQ(rows_of({10, true, 42}, 100), references["first_ten_of_100_by_42"].get<std::vector<std::int64_t>>());
}

TEST(Subset, WithoutASeedTheFirstRows) {
  EXPECT_EQ(rows_of({3, false, 0}, 10), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(rows_of({-1, false, 0}, 2), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(rows_of({5, false, 0}, 2), (std::vector<std::int64_t>{0, 1}));  // no more than there are
  EXPECT_TRUE(rows_of({0, true, 1}, 2).empty());
}

}  // namespace
}  // namespace tessera

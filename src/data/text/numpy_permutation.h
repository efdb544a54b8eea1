// The permutations of NumPy's `default_rng(seed).permutation(n)`, which `datasets` shuffles by.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera {

// n is below 2^32; more rows throw Error.
std::vector<std::int64_t> numpy_permutation(std::int64_t n, std::uint64_t seed);

// The rows a run uses, in order: the first `max_rows`, or with a seed those of
// `dataset.shuffle(seed).select(range(max_rows))`. All rows if `max_rows` is negative or more than there are
// (`datasets` refuses the latter; callers that care compare sizes).
struct Subset {
  std::int64_t max_rows = -1;
  bool is_shuffled = false;
  std::uint64_t seed = 0;
};
std::vector<std::int64_t> rows_of(const Subset& subset, std::int64_t num_rows);

}  // namespace tessera

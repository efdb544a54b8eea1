// The rows that a run uses, in the order of NumPy's `default_rng(seed).permutation(n)`, which `datasets` shuffles by.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera {

// The rows a run uses, in order: the first `max_rows`, or with a seed those of
// `dataset.shuffle(seed).select(range(max_rows))`. All rows if `max_rows` is negative or more than there are
// (`datasets` refuses the latter; callers that care compare sizes). Throws Error for 2^32 rows or more, shuffled.
struct Subset {
  std::int64_t max_rows = -1;
  bool is_shuffled = false;
  std::uint64_t seed = 0;
};
std::vector<std::int64_t> rows_of(const Subset& subset, std::int64_t num_rows);

}  // namespace tessera

// Sequences into groups of at most so many tokens, none split. Deterministic: the same lengths give the same groups.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera {

using RowGroup = std::vector<std::int64_t>;

// Rows in the order given; a group ends where the next row does not fit. `lengths[row]` are tokens, `budget` too. Both
// throw UsageError naming the row where one alone exceeds the budget.
std::vector<RowGroup> pack_in_order(std::span<const std::int64_t> rows, std::span<const std::int64_t> lengths,
                                    std::int64_t budget);

// As few groups as best-fit finds, longest rows first: for evaluation, where order means nothing. Rows within a group
// and groups among each other stand in the order of their first row in `rows`.
std::vector<RowGroup> pack_tightly(std::span<const std::int64_t> rows, std::span<const std::int64_t> lengths,
                                   std::int64_t budget);

}  // namespace tessera

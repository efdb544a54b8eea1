// Groups rows under a limit of tokens, splitting none. Deterministic: the same lengths give the same groups.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera {

using RowGroup = std::vector<std::int64_t>;

// Rows in the given order; a group ends where the next row does not fit. `lengths[row]` and `budget` count tokens. Both
// functions throw UsageError naming the row if one row alone exceeds the budget.
std::vector<RowGroup> group_in_order(std::span<const std::int64_t> rows, std::span<const std::int64_t> lengths,
                                     std::int64_t budget);

// As few groups as best-fit finds, longest rows first: for evaluation, where order does not matter. Rows within a
// group, and the groups themselves, are ordered by their first row in `rows`.
std::vector<RowGroup> group_tightly(std::span<const std::int64_t> rows, std::span<const std::int64_t> lengths,
                                    std::int64_t budget);

}  // namespace tessera

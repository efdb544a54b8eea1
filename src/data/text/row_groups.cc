#include "data/text/row_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "core/error.h"

namespace tessera {

namespace {

std::int64_t length_within(std::int64_t row, std::span<const std::int64_t> lengths, std::int64_t budget) {
  const std::int64_t length = lengths[static_cast<std::size_t>(row)];
  if (length > budget) {
    throw UsageError(
        fmt::format("row {} has {} tokens, more than the {} of a whole batch, and rows are not split; raise the "
                    "number of tokens per batch or lower max_length",
                    row, length, budget));
  }
  return length;
}

}  // namespace

std::vector<RowGroup> group_in_order(std::span<const std::int64_t> rows, std::span<const std::int64_t> lengths,
                                     std::int64_t budget) {
  std::vector<RowGroup> groups;
  std::int64_t left = -1;
  for (const std::int64_t row : rows) {
    const std::int64_t length = length_within(row, lengths, budget);
    if (groups.empty() || length > left) {
      groups.emplace_back();
      left = budget;
    }
    groups.back().push_back(row);
    left -= length;
  }
  return groups;
}

std::vector<RowGroup> group_tightly(std::span<const std::int64_t> rows, std::span<const std::int64_t> lengths,
                                    std::int64_t budget) {
  std::vector<std::size_t> by_length(rows.size());
  std::iota(by_length.begin(), by_length.end(), std::size_t{0});
  std::stable_sort(by_length.begin(), by_length.end(), [&](std::size_t a, std::size_t b) {
    return length_within(rows[a], lengths, budget) > length_within(rows[b], lengths, budget);
  });
  std::vector<std::vector<std::size_t>> groups;         // places in `rows`
  std::set<std::pair<std::int64_t, std::size_t>> room;  // what each group has left, and its number
  for (const std::size_t place : by_length) {
    const std::int64_t length = length_within(rows[place], lengths, budget);
    const auto fitting = room.lower_bound({length, 0});
    std::size_t group = groups.size();
    std::int64_t left = budget;
    if (fitting == room.end()) {
      groups.emplace_back();
    } else {
      std::tie(left, group) = *fitting;
      room.erase(fitting);
    }
    groups[group].push_back(place);
    room.emplace(left - length, group);
  }
  for (auto& group : groups) std::sort(group.begin(), group.end());
  std::sort(groups.begin(), groups.end());
  std::vector<RowGroup> result;
  for (const auto& group : groups) {
    RowGroup& members = result.emplace_back();
    for (const std::size_t place : group) members.push_back(rows[place]);
  }
  return result;
}

}  // namespace tessera

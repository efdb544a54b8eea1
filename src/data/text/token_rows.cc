#include "data/text/token_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace tessera {

TokenRows::TokenRows(std::vector<TokenStore> parts) {
  auto shared = std::make_shared<Shared>();
  shared->parts = std::move(parts);
  for (const TokenStore& part : shared->parts) {
    shared->first_rows.push_back(shared->counts.num_rows);
    shared->counts.add(part.counts());
  }
  shared->first_rows.push_back(shared->counts.num_rows);
  shared_ = std::move(shared);
}

TokenRows::TokenRows(TokenStore store) : TokenRows(std::vector<TokenStore>{std::move(store)}) {}

TokenRows TokenRows::joined(std::span<const TokenRows> all) {
  std::vector<TokenStore> parts;
  for (const TokenRows& rows : all) parts.insert(parts.end(), rows.parts().begin(), rows.parts().end());
  return TokenRows(std::move(parts));
}

TokenRows::Place TokenRows::place_of(std::int64_t row) const {
  if (row < 0 || row >= size()) throw Error(fmt::format("there is no row {} in {}", row, size()));
  const std::vector<std::int64_t>& first_rows = shared_->first_rows;
  if (first_rows.size() == 2) return {shared_->parts.front(), row};
  const auto after = std::upper_bound(first_rows.begin(), first_rows.end(), row);
  return {shared_->parts[static_cast<std::size_t>(after - first_rows.begin() - 1)], row - *(after - 1)};
}

std::int64_t TokenRows::length(std::int64_t row) const {
  const Place place = place_of(row);
  return place.part.length(place.row);
}

std::vector<std::int32_t> TokenRows::lengths() const {
  std::vector<std::int32_t> all;
  all.reserve(static_cast<std::size_t>(size()));
  for (const TokenStore& part : parts()) {
    for (std::int64_t row = 0; row < part.size(); ++row) all.push_back(static_cast<std::int32_t>(part.length(row)));
  }
  return all;
}

std::span<const std::int32_t> TokenRows::ids(const TokenPiece& piece) const {
  const Place place = place_of(piece.row);
  return place.part.ids({place.row, piece.begin, piece.length});
}

void TokenRows::copy_targets(const TokenPiece& piece, std::int64_t* to) const {
  const Place place = place_of(piece.row);
  place.part.copy_targets({place.row, piece.begin, piece.length}, to);
}

std::int64_t TokenRows::num_counted(const TokenPiece& piece) const {
  const Place place = place_of(piece.row);
  return place.part.num_counted({place.row, piece.begin, piece.length});
}

bool TokenRows::counts_as_target(std::int64_t row, std::int64_t place_in_row) const {
  const Place place = place_of(row);
  return place.part.counts_as_target(place.row, place_in_row);
}

std::vector<std::int32_t> TokenRows::targets(std::int64_t row) const {
  const Place place = place_of(row);
  return place.part.targets(place.row);
}

}  // namespace tessera

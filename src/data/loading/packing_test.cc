#include "data/loading/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "core/error.h"

namespace tessera {
namespace {

using Lengths = std::vector<std::int32_t>;

// As instructions and their answers are: many short ones, a long tail, cut at `max_length`.
Lengths alpaca_like_lengths(std::size_t num_rows, std::int32_t max_length, unsigned seed = 3) {
  std::mt19937 random(seed);
  std::lognormal_distribution<double> length(std::log(90.0), 0.75);
  Lengths lengths(num_rows);
  for (std::int32_t& one : lengths) {
    one = std::clamp(static_cast<std::int32_t>(length(random)), std::int32_t{12}, max_length);
  }
  return lengths;
}

std::vector<std::vector<TokenPiece>> all_bins(const PackedRows& packed) {
  std::vector<std::vector<TokenPiece>> bins;
  for (std::int64_t bin = 0; bin < packed.size(); ++bin) {
    bins.emplace_back(packed.bin(bin).begin(), packed.bin(bin).end());
  }
  return bins;
}

TEST(PackBestFit, EveryRowIsWholeInOneBinAndNoBinIsTooLong) {
  for (const std::int32_t max_length : {1, 63, 64, 65, 512, 5000}) {
    Lengths lengths = alpaca_like_lengths(3000, max_length);
    for (std::int32_t& length : lengths) length = std::min(length, max_length);
    lengths[5] = 0;
    const PackedRows packed = pack_best_fit(lengths, max_length, 1);
    std::vector<int> seen(lengths.size());
    for (std::int64_t bin = 0; bin < packed.size(); ++bin) {
      ASSERT_GT(packed.num_tokens(bin), 0);
      ASSERT_LE(packed.num_tokens(bin), max_length);
      for (const TokenPiece& piece : packed.bin(bin)) {
        const auto row = static_cast<std::size_t>(piece.row);
        ++seen[row];
        ASSERT_EQ(piece.begin, 0);
        ASSERT_EQ(piece.length, lengths[row]);
      }
    }
    EXPECT_EQ(seen[5], 0) << "an empty row";
    seen[5] = 1;
    EXPECT_EQ(seen, std::vector<int>(lengths.size(), 1));
  }
}

// Against the plain way: of all bins, the one with the least room that is enough.
TEST(PackBestFit, UsesAsManyBinsAsThePlainBestFit) {
  for (const std::int32_t max_length : {50, 128, 1000, 4500}) {
    Lengths lengths = alpaca_like_lengths(700, max_length, static_cast<unsigned>(max_length));
    const std::int64_t num_bins = pack_best_fit(lengths, max_length, 9).size();
    std::ranges::sort(lengths, std::greater<>());
    std::vector<std::int32_t> rooms;
    for (const std::int32_t length : lengths) {
      auto best = rooms.end();
      for (auto room = rooms.begin(); room != rooms.end(); ++room) {
        if (*room >= length && (best == rooms.end() || *room < *best)) best = room;
      }
      if (best == rooms.end()) best = rooms.insert(rooms.end(), max_length);
      *best -= length;
    }
    EXPECT_EQ(num_bins, std::ssize(rooms));
  }
}

TEST(PackBestFit, LeavesLessThanTwoPercentOfAnAlpacaLikeFileUnfilled) {
  for (const std::int32_t max_length : {512, 1024, 2048}) {
    const Lengths lengths = alpaca_like_lengths(52000, max_length);
    const PackedRows packed = pack_best_fit(lengths, max_length, 42);
    EXPECT_LT(share_unfilled(packed, max_length), 0.02) << max_length;
    EXPECT_GE(share_unfilled(packed, max_length), 0);
  }
}

TEST(PackBestFit, DependsOnTheLengthsAndTheSeedAlone) {
  const Lengths lengths = alpaca_like_lengths(2000, 512);
  const auto first = all_bins(pack_best_fit(lengths, 512, 7));
  EXPECT_EQ(first, all_bins(pack_best_fit(lengths, 512, 7)));
  EXPECT_NE(first, all_bins(pack_best_fit(lengths, 512, 8)));
  // These bins are those of every machine: resumed runs must find the same ones.
  const auto few = all_bins(pack_best_fit(Lengths{4, 2, 2, 3, 1, 2}, 5, 0));
  EXPECT_EQ(few, (std::vector<std::vector<TokenPiece>>{
                     {{3, 0, 3}, {1, 0, 2}}, {{0, 0, 4}}, {{5, 0, 2}, {2, 0, 2}, {4, 0, 1}}}));
}

TEST(PackBestFit, RefusesRowsThatDoNotFit) {
  EXPECT_THROW(pack_best_fit(Lengths{3, 6}, 5, 0), Error);
  EXPECT_THROW(pack_best_fit(Lengths{3}, 0, 0), Error);
  EXPECT_EQ(pack_best_fit(Lengths{}, 5, 0).size(), 0);
  EXPECT_EQ(pack_best_fit(Lengths{0}, 5, 0).size(), 0);
  EXPECT_THROW(pack_best_fit(Lengths{3}, 5, 0).bin(1), Error);
}

TEST(PackWrapped, CutsTheRowsEndToEnd) {
  const Lengths lengths = {3, 0, 9, 1};
  EXPECT_EQ(all_bins(pack_wrapped(lengths, {.max_length = 4})),
            (std::vector<std::vector<TokenPiece>>{{{0, 0, 3}, {2, 0, 1}}, {{2, 1, 4}}, {{2, 5, 4}}, {{3, 0, 1}}}));
  EXPECT_EQ(pack_wrapped(lengths, {.max_length = 4, .drops_rest = true}).size(), 3);
  EXPECT_EQ(pack_wrapped(lengths, {.max_length = 13, .drops_rest = true}).size(), 1);
  EXPECT_EQ(pack_wrapped(lengths, {.max_length = 14, .drops_rest = true}).size(), 0);
}

TEST(PackWrapped, CutsEachGroupOfRowsByItself) {
  const Lengths lengths = {3, 3, 3, 3, 3};
  EXPECT_EQ(all_bins(pack_wrapped(lengths, {.max_length = 4, .rows_per_group = 2})),
            (std::vector<std::vector<TokenPiece>>{
                {{0, 0, 3}, {1, 0, 1}}, {{1, 1, 2}}, {{2, 0, 3}, {3, 0, 1}}, {{3, 1, 2}}, {{4, 0, 3}}}));
  EXPECT_EQ(all_bins(pack_wrapped(lengths, {.max_length = 4, .rows_per_group = 2, .drops_rest = true})),
            (std::vector<std::vector<TokenPiece>>{{{0, 0, 3}, {1, 0, 1}}, {{2, 0, 3}, {3, 0, 1}}}));
}

TEST(PackedRows, MayBeOfASelectionOfRows) {
  const std::vector<std::int64_t> rows = {70, 80, 90};
  EXPECT_EQ(all_bins(pack_wrapped(Lengths{2, 2, 1}, {.max_length = 3}).of_rows(rows)),
            (std::vector<std::vector<TokenPiece>>{{{70, 0, 2}, {80, 0, 1}}, {{80, 1, 1}, {90, 0, 1}}}));
}

}  // namespace
}  // namespace tessera

#include "data/loading/packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "core/error.h"
#include "data/loading/seeded_random.h"
#include "data/text/bit_runs.h"

namespace tessera {

namespace {

// Rows and bins are counted in 32 bits while they are packed: half the memory, and so half the time.
using Number = std::uint32_t;
constexpr Number kNone = std::numeric_limits<Number>::max();

// Bins by their free room. Among equal ones the newest comes first.
class BinsByRoom {
 public:
  explicit BinsByRoom(std::int64_t max_length) : newest_(static_cast<std::size_t>(max_length), kNone) {
    // Level 0 has a bit per room, each level above it one per word of the level below, the highest one word.
    for (std::int64_t num_bits = max_length; levels_.empty() || levels_.back().size() > 1;) {
      num_bits = num_words_of_bits(num_bits);
      levels_.emplace_back(static_cast<std::size_t>(num_bits), 0);
    }
  }

  // The smallest room of at least `least` that some bin has; -1: there is none.
  std::int64_t smallest_room(std::int64_t least) const {
    std::size_t level = 0;
    std::uint64_t found = 0;
    auto at = static_cast<std::size_t>(least);
    while (true) {
      const auto& words = levels_[level];
      if (at / 64 < words.size()) found = words[at / 64] & ~low_bits(static_cast<std::int64_t>(at % 64));
      if (found != 0) break;
      if (++level == levels_.size()) return -1;
      at = at / 64 + 1;  // this word has none: one of the words after it
    }
    at = at / 64 * 64 + static_cast<std::size_t>(std::countr_zero(found));
    while (level-- > 0) at = at * 64 + static_cast<std::size_t>(std::countr_zero(levels_[level][at]));
    return static_cast<std::int64_t>(at);
  }

  void put(Number bin, std::int64_t room) {
    const auto at = static_cast<std::size_t>(room);
    if (bin == older_.size()) older_.push_back(kNone);
    older_[bin] = std::exchange(newest_[at], bin);
    if (older_[bin] == kNone) mark(at);
  }

  Number take(std::int64_t room) {
    const auto at = static_cast<std::size_t>(room);
    const Number bin = newest_[at];
    newest_[at] = older_[bin];
    if (newest_[at] == kNone) unmark(at);
    return bin;
  }

 private:
  void mark(std::size_t at) {
    for (auto& words : levels_) {
      const bool was_empty = words[at / 64] == 0;
      words[at / 64] |= std::uint64_t{1} << at % 64;
      if (!was_empty) return;
      at /= 64;
    }
  }
  void unmark(std::size_t at) {
    for (auto& words : levels_) {
      words[at / 64] &= ~(std::uint64_t{1} << at % 64);
      if (words[at / 64] != 0) return;
      at /= 64;
    }
  }

  std::vector<Number> newest_;                      // by room: a bin with it
  std::vector<Number> older_;                       // by bin: the next one with the same room
  std::vector<std::vector<std::uint64_t>> levels_;  // which rooms there are
};

// The rows with tokens, the longest first; those of equal length in an order of the seed.
struct LongestFirst {
  std::vector<Number> rows;
  std::vector<std::size_t> begins;  // by how much a row is shorter than max_length; then the number of rows

  // Calls `use(i, length)` for each place in `rows`. Looking lengths up by row would miss the cache each time.
  void for_each(std::int64_t max_length, const auto& use) const {
    for (std::size_t shorter = 0; shorter + 1 < begins.size(); ++shorter) {
      const std::int64_t length = max_length - static_cast<std::int64_t>(shorter);
      for (std::size_t i = begins[shorter]; i < begins[shorter + 1]; ++i) use(i, length);
    }
  }
};

LongestFirst longest_first(std::span<const std::int32_t> lengths, std::int64_t max_length, SeededRandom& random) {
  std::vector<std::size_t> begins(static_cast<std::size_t>(max_length) + 1);
  const auto shortness = [&](std::int32_t length) { return static_cast<std::size_t>(max_length - length); };
  for (std::size_t row = 0; row < lengths.size(); ++row) {
    if (lengths[row] < 0 || lengths[row] > max_length) {
      throw Error(fmt::format("row {} has {} tokens; a bin has room for {}", row, lengths[row], max_length));
    }
    if (lengths[row] > 0) ++begins[shortness(lengths[row]) + 1];
  }
  for (std::size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
  LongestFirst sorted{std::vector<Number>(begins.back()), begins};
  for (std::size_t row = 0; row < lengths.size(); ++row) {
    if (lengths[row] > 0) sorted.rows[begins[shortness(lengths[row])]++] = static_cast<Number>(row);
  }
  for (std::size_t i = 0; i + 1 < sorted.begins.size(); ++i) {
    const std::size_t begin = sorted.begins[i];
    random.shuffle(std::span(sorted.rows).subspan(begin, sorted.begins[i + 1] - begin));
  }
  return sorted;
}

// Pieces grouped by bin, the bins in an order of the seed; within a bin the longest row first.
PackedRows grouped(const LongestFirst& sorted, std::int64_t max_length, const std::vector<Number>& bin_of,
                   Number num_bins, SeededRandom& random) {
  std::vector<Number> place(num_bins);
  for (Number bin = 0; bin < num_bins; ++bin) place[bin] = bin;
  random.shuffle(std::span(place));
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(num_bins) + 1);
  for (const Number bin : bin_of) ++offsets[std::size_t{place[bin]} + 1];
  for (std::size_t i = 1; i < offsets.size(); ++i) offsets[i] += offsets[i - 1];
  std::vector<TokenPiece> pieces(sorted.rows.size());
  // Each bin's offset counts up to the next bin's while it is filled; then all are moved back by one place.
  sorted.for_each(max_length, [&](std::size_t i, std::int64_t length) {
    const auto at = static_cast<std::size_t>(offsets[place[bin_of[i]]]++);
    pieces[at] = {sorted.rows[i], 0, static_cast<std::int32_t>(length)};
  });
  std::move_backward(offsets.begin(), offsets.end() - 1, offsets.end());
  offsets[0] = 0;
  return PackedRows(std::move(offsets), std::move(pieces));
}

void check_max_length(std::int64_t max_length) {
  if (max_length < 1 || max_length >= std::numeric_limits<std::int32_t>::max()) {
    throw Error(fmt::format("bins of {} tokens are not possible (expected: 1 to 2^31 - 2)", max_length));
  }
}

}  // namespace

PackedRows::PackedRows(std::vector<std::int64_t> offsets, std::vector<TokenPiece> pieces)
    : offsets_(std::move(offsets)), pieces_(std::move(pieces)) {}

std::span<const TokenPiece> PackedRows::bin(std::int64_t number) const {
  if (number < 0 || number >= size()) throw Error(fmt::format("there is no bin {} in {}", number, size()));
  const auto begin = static_cast<std::size_t>(offsets_[static_cast<std::size_t>(number)]);
  const auto end = static_cast<std::size_t>(offsets_[static_cast<std::size_t>(number) + 1]);
  return std::span(pieces_).subspan(begin, end - begin);
}

std::int64_t PackedRows::num_tokens(std::int64_t number) const {
  std::int64_t sum = 0;
  for (const TokenPiece& piece : bin(number)) sum += piece.length;
  return sum;
}

PackedRows PackedRows::of_rows(std::span<const std::int64_t> rows) && {
  for (TokenPiece& piece : pieces_) piece.row = rows[static_cast<std::size_t>(piece.row)];
  return std::move(*this);
}

double share_unfilled(const PackedRows& bins, std::int64_t max_length) {
  std::int64_t num_tokens = 0;
  for (const TokenPiece& piece : bins.pieces()) num_tokens += piece.length;
  const auto num_places = static_cast<double>(bins.size()) * static_cast<double>(max_length);
  return num_places == 0 ? 0 : 1 - static_cast<double>(num_tokens) / num_places;
}

PackedRows pack_best_fit(std::span<const std::int32_t> lengths, std::int64_t max_length, std::uint64_t seed) {
  check_max_length(max_length);
  if (lengths.size() >= kNone)
    throw Error(fmt::format("{} rows are too many to pack: at most 2^32 - 2", lengths.size()));
  SeededRandom random(seed);
  const LongestFirst sorted = longest_first(lengths, max_length, random);
  std::vector<Number> bin_of(sorted.rows.size());
  BinsByRoom open_bins(max_length);
  Number num_bins = 0;
  sorted.for_each(max_length, [&](std::size_t i, std::int64_t length) {
    const std::int64_t room = open_bins.smallest_room(length);
    bin_of[i] = room < 0 ? num_bins++ : open_bins.take(room);
    // Full bins too: with room 0, where no row looks.
    open_bins.put(bin_of[i], (room < 0 ? max_length : room) - length);
  });
  return grouped(sorted, max_length, bin_of, num_bins, random);
}

PackedRows pack_wrapped(std::span<const std::int32_t> lengths, const WrapOptions& options) {
  check_max_length(options.max_length);
  std::vector<std::int64_t> offsets = {0};
  std::vector<TokenPiece> pieces;
  std::int64_t room = options.max_length;
  const auto end_bin = [&] {
    offsets.push_back(std::ssize(pieces));
    room = options.max_length;
  };
  const auto end_group = [&] {
    if (room == options.max_length) return;
    if (options.drops_rest) pieces.resize(static_cast<std::size_t>(offsets.back()));
    if (!options.drops_rest) offsets.push_back(std::ssize(pieces));
    room = options.max_length;
  };
  for (std::size_t row = 0; row < lengths.size(); ++row) {
    const auto number = static_cast<std::int64_t>(row);
    if (options.rows_per_group > 0 && number % options.rows_per_group == 0) end_group();
    for (std::int32_t begin = 0; begin < lengths[row];) {
      const auto length = static_cast<std::int32_t>(std::min<std::int64_t>(room, lengths[row] - begin));
      pieces.push_back({number, begin, length});
      begin += length;
      room -= length;
      if (room == 0) end_bin();
    }
  }
  end_group();
  return PackedRows(std::move(offsets), std::move(pieces));
}

}  // namespace tessera

#include "data/loading/mixed_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace tessera {

MixedRows::MixedRows(std::vector<std::int64_t> sizes, std::vector<double> weights, std::uint64_t seed)
    : sizes_(std::move(sizes)), seed_(seed), num_drawn_(sizes_.size()) {
  if (sizes_.empty() || sizes_.size() != weights.size()) {
    throw Error(fmt::format("a mix of {} corpora cannot have {} weights", sizes_.size(), weights.size()));
  }
  for (std::size_t corpus = 0; corpus < sizes_.size(); ++corpus) {
    if (!(weights[corpus] > 0) || !std::isfinite(weights[corpus])) {
      throw UsageError(
          fmt::format("a weight of {} is not possible in a mix; expected a positive number", weights[corpus]));
    }
    if (sizes_[corpus] < 1) throw UsageError(fmt::format("corpus {} of the mix has no rows", corpus + 1));
    limits_.push_back((limits_.empty() ? 0 : limits_.back()) + weights[corpus]);
  }
  SeededRandom random(seed_);
  std::size_t corpus;
  do {
    corpus = draw(random);
    ++size_;
  } while (++num_drawn_[corpus] < sizes_[corpus]);
}

std::size_t MixedRows::draw(SeededRandom& random) const {
  const auto found = std::upper_bound(limits_.begin(), limits_.end(), random.share() * limits_.back());
  // Rounding may give the last limit itself.
  return std::min(static_cast<std::size_t>(found - limits_.begin()), limits_.size() - 1);
}

std::vector<std::int64_t> MixedRows::rows(std::int64_t epoch) const {
  std::vector<std::vector<std::int64_t>> of_corpus;
  std::vector<std::int64_t> first_rows = {0};
  for (std::size_t corpus = 0; corpus < sizes_.size(); ++corpus) {
    of_corpus.push_back(rows_of(corpus, epoch));
    first_rows.push_back(first_rows.back() + sizes_[corpus]);
  }
  std::vector<std::size_t> num_taken(sizes_.size());
  std::vector<std::int64_t> all(static_cast<std::size_t>(size_));
  SeededRandom random(seed_);
  for (std::int64_t& row : all) {
    const std::size_t corpus = draw(random);
    row = first_rows[corpus] + of_corpus[corpus][num_taken[corpus]++];
  }
  return all;
}

// A corpus is gone through in rounds, each in an order of its own; an epoch is a stretch of them, which touches two
// rounds at most.
std::vector<std::int64_t> MixedRows::rows_of(std::size_t corpus, std::int64_t epoch) const {
  const std::int64_t size = sizes_[corpus], count = num_drawn_[corpus], begin = epoch * count;
  std::vector<std::int64_t> rows, round(static_cast<std::size_t>(size));
  for (std::int64_t at = begin; at < begin + count;) {
    std::iota(round.begin(), round.end(), std::int64_t{0});
    SeededRandom(seed_, std::uint64_t{corpus} + 1, static_cast<std::uint64_t>(at / size)).shuffle(std::span(round));
    const std::int64_t end = std::min(begin + count, (at / size + 1) * size);
    rows.insert(rows.end(), round.begin() + at % size, round.begin() + at % size + (end - at));
    at = end;
  }
  return rows;
}

std::vector<WeightedFile> parse_mix(const std::string& text) {
  std::vector<WeightedFile> files;
  for (const std::string& part : split(text, ',')) {
    const std::size_t sign = part.rfind('=');
    const std::string file(trim(std::string_view(part).substr(0, std::min(sign, part.size()))));
    const auto weight =
        sign == std::string::npos ? std::nullopt : parse_real(trim(std::string_view(part).substr(sign + 1)));
    if (file.empty() || !weight || *weight <= 0) {
      throw UsageError(
          fmt::format("'{}' is not part of a mix; expected FILE=WEIGHT with a positive weight, as in "
                      "a.jsonl=0.7,b.jsonl=0.3",
                      printable(part)));
    }
    files.push_back({file, *weight});
  }
  return files;
}

}  // namespace tessera

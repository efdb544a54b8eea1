#include "data/loading/mixed_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "data/loading/seeded_random.h"

namespace tessera {
namespace {

using Rows = std::vector<std::int64_t>;

// Sums of the weights up to each corpus.
std::vector<double> limits_of(const Rows& sizes, const std::vector<double>& weights) {
  if (sizes.empty() || sizes.size() != weights.size()) {
    throw Error(fmt::format("a mix of {} corpora cannot have {} weights", sizes.size(), weights.size()));
  }
  std::vector<double> limits;
  for (std::size_t corpus = 0; corpus < sizes.size(); ++corpus) {
    if (!(weights[corpus] > 0) || !std::isfinite(weights[corpus])) {
      throw UsageError(
          fmt::format("a weight of {} is not possible in a mix; expected a positive number", weights[corpus]));
    }
    if (sizes[corpus] < 1) throw UsageError(fmt::format("corpus {} of the mix has no rows", corpus + 1));
    limits.push_back((limits.empty() ? 0 : limits.back()) + weights[corpus]);
  }
  return limits;
}

// Of each corpus, the numbers of its rows among all, in an order of its own.
std::vector<Rows> shuffled(const Rows& sizes, std::uint64_t seed) {
  std::vector<Rows> all;
  std::int64_t first = 0;
  for (std::size_t corpus = 0; corpus < sizes.size(); ++corpus) {
    Rows rows(static_cast<std::size_t>(sizes[corpus]));
    std::iota(rows.begin(), rows.end(), first);
    SeededRandom(seed, std::uint64_t{corpus} + 1, 0).shuffle(std::span(rows));
    all.push_back(std::move(rows));
    first += sizes[corpus];
  }
  return all;
}

}  // namespace

Rows mixed_rows(const Rows& sizes, const std::vector<double>& weights, std::uint64_t seed) {
  const std::vector<double> limits = limits_of(sizes, weights);
  const std::vector<Rows> of_corpus = shuffled(sizes, seed);
  std::vector<std::size_t> num_taken(sizes.size());
  Rows all;
  SeededRandom random(seed);
  while (true) {
    const auto found = std::ranges::upper_bound(limits, random.share() * limits.back());
    // Rounding may give the last limit itself.
    const std::size_t corpus = std::min(static_cast<std::size_t>(found - limits.begin()), limits.size() - 1);
    all.push_back(of_corpus[corpus][num_taken[corpus]++]);
    if (num_taken[corpus] == of_corpus[corpus].size()) return all;
  }
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

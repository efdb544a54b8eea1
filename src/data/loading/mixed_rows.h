// Several corpora drawn by weight: --mix a.jsonl=0.7,b.jsonl=0.3
//
// An epoch is a list of rows of the corpora laid one after the other (TokenRows::joined). Each place of it is drawn
// from a corpus by the weights; the epoch ends with the draw that takes the last row of some corpus, as
// datasets.interleave_datasets(probabilities=..., stopping_strategy="first_exhausted") does, with draws of our own.
// Which corpus a place is drawn from is a function of sizes, weights and seed: all epochs have equally many rows. Which
// of its rows also depends on the epoch: a corpus goes through all of its rows, in an order of the seed, before it
// shows one again. Nothing depends on the number of ranks.
//
// A Sampler of size() rows draws places of an epoch: rows(epoch)[sampler.index(i)]. To be packed, a mix is taken once:
// pack_best_fit(lengths of rows(0)).of_rows(rows(0)).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/loading/seeded_random.h"

namespace tessera {

class MixedRows {
 public:
  // One weight per corpus; they need not add up to 1. Throws UsageError for a weight that is not positive, and for a
  // corpus without rows.
  MixedRows(std::vector<std::int64_t> sizes, std::vector<double> weights, std::uint64_t seed);

  std::int64_t size() const { return size_; }  // rows of an epoch
  std::int64_t num_drawn(std::size_t corpus) const { return num_drawn_[corpus]; }
  std::vector<std::int64_t> rows(std::int64_t epoch) const;

 private:
  std::size_t draw(SeededRandom& random) const;  // a corpus
  std::vector<std::int64_t> rows_of(std::size_t corpus, std::int64_t epoch) const;

  std::vector<std::int64_t> sizes_;
  std::vector<double> limits_;  // sums of the weights up to each corpus
  std::uint64_t seed_;
  std::vector<std::int64_t> num_drawn_;  // from each corpus in an epoch
  std::int64_t size_ = 0;
};

struct WeightedFile {
  std::filesystem::path file;
  double weight = 0;
};
// "a.jsonl=0.7,b.jsonl=0.3". Throws UsageError saying what is wrong.
std::vector<WeightedFile> parse_mix(const std::string& text);

}  // namespace tessera

// Several corpora drawn by weight: --mix a.jsonl=0.7,b.jsonl=0.3
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tessera {

// Rows of the corpora laid one after the other (TokenRows::joined). Each place is drawn from a corpus by the weights,
// and the list ends with the draw that takes the last row of some corpus, as
// datasets.interleave_datasets(probabilities=..., stopping_strategy="first_exhausted") does, with draws of our own;
// each corpus gives its rows in an order of the seed. All is a function of sizes, weights and seed: every epoch has the
// same rows, for any number of ranks.
//
// One weight per corpus; they need not add up to 1. Throws UsageError for a weight that is not positive, and for a
// corpus without rows.
std::vector<std::int64_t> mixed_rows(const std::vector<std::int64_t>& sizes, const std::vector<double>& weights,
                                     std::uint64_t seed);

struct WeightedFile {
  std::filesystem::path file;
  double weight = 0;
};
// "a.jsonl=0.7,b.jsonl=0.3". Throws UsageError saying what is wrong.
std::vector<WeightedFile> parse_mix(const std::string& text);

}  // namespace tessera

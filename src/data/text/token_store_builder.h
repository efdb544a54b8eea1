// Collects sequences of tokens and returns the bytes of a store, in the smallest form that holds all of their targets.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/text/bit_runs.h"
#include "data/text/token_store.h"

namespace tessera {

class TokenStoreBuilder {
 public:
  // `targets`: what each position predicts, kIgnoredTarget where that does not count. Throws Error if there are not as
  // many as ids, or for a negative id or 2^31 of them.
  void add(std::span<const std::int32_t> ids, std::span<const std::int32_t> targets, bool is_truncated);
  // Each position predicts the next token, where that one counts. `counted` has one entry per token, or none: all do.
  void add_counted(std::span<const std::int32_t> ids, const std::vector<bool>& counted, bool is_truncated);
  // A row of the file of which nothing is kept.
  void add_dropped() { ++counts_.num_dropped; }

  std::int64_t num_tokens() const { return counts_.num_tokens; }
  // `key`: at most 32 bytes.
  std::string bytes(const std::string& key, std::int64_t num_rows_of_file) const;

 private:
  void add_ids(std::span<const std::int32_t> ids, bool is_truncated);
  void need_bits();
  void need_targets();

  TokenCounts counts_;
  TargetForm form_ = TargetForm::kEveryNext;
  std::vector<std::int64_t> offsets_ = {0};
  std::vector<std::int32_t> ids_;
  BitWriter counted_;                  // kCountedNext
  std::vector<std::int32_t> targets_;  // kExplicit
};

}  // namespace tessera

// The model: merges a piece's characters (or bytes) pair by pair, the pair with the lowest rank first.
//
// Constant after set-up, safe from any thread; each call brings its own scratch. The time is n log n in the piece's
// length, whatever the content.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/component.h"
#include "data/tokenizer/merge_table.h"
#include "data/tokenizer/vocabulary.h"
#include "data/tokenizer/word_cache.h"

namespace tessera::internal {

struct BpeScratch {
  WordCache cache;
  std::vector<std::int32_t> symbols;  // of the current piece
  std::vector<std::uint32_t> ranks;   // of symbol i with its neighbour
  struct Link {
    std::int32_t token, previous, next;  // token -1: merged into another
  };
  std::vector<Link> links;
  struct Candidate {
    std::uint32_t rank, position;
    std::int32_t token;
  };
  std::vector<Candidate> heap;
};

struct BpeSettings {
  std::optional<std::string> unk_token;
  std::string continuing_subword_prefix, end_of_word_suffix;
  bool fuse_unk = false, byte_fallback = false, ignore_merges = false;
};

using MergePairs = std::vector<std::pair<std::string, std::string>>;

class Bpe {
 public:
  // `where` is what messages call the model's place. Throws if a merge names a token that the vocabulary does not have.
  Bpe(Vocabulary vocabulary, const MergePairs& merges, BpeSettings settings, const std::string& where);

  // From now on pieces are bytes, and the vocabulary's characters stand for them (byte_level.h). Returns false if this
  // model needs characters.
  bool read_bytes();

  void encode(std::string_view piece, BpeScratch& scratch, std::vector<std::int32_t>& ids) const;
  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  struct Unknown;
  void add_characters(std::string_view piece, std::vector<std::int32_t>& symbols) const;
  void add_character(const std::string& character, Unknown& unknown, std::vector<std::int32_t>& symbols) const;
  void add_bytes(std::string_view piece, std::vector<std::int32_t>& symbols) const;
  void merge_few(BpeScratch& scratch) const;
  void merge_many(BpeScratch& scratch) const;
  std::optional<std::int32_t> whole(std::string_view piece) const;

  Vocabulary vocabulary_;
  BpeSettings settings_;
  MergeTable merges_;
  std::string where_;
  bool reads_bytes_ = false;
  bool every_byte_is_known_ = false;
  std::array<std::int32_t, 256> token_of_byte_{};
  IdOfToken whole_pieces_;  // by their bytes, for ignore_merges
};

// "model" of tokenizer.json.
Bpe read_bpe(const Component& component);
// vocab.json and the lines of merges.txt.
Vocabulary read_vocabulary(const Component& component);
MergePairs parse_merges(std::string_view text, const std::string& origin);

}  // namespace tessera::internal

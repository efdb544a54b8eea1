// The model: merges a piece's characters (or bytes) pair by pair, the pair with the lowest rank first.
//
// Constant after set-up, safe from any thread; each call brings its own scratch. The time is n log n in the piece's
// length, whatever the content.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/json_reader.h"
#include "data/tokenizer/word_cuts.h"

namespace tessera::internal {

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
using IdOfToken = std::unordered_map<std::string, std::int32_t, StringHash, std::equal_to<>>;

// Tokens by id and ids by token: one of each, no id twice.
class Vocabulary {
 public:
  // Returns the token that already has this id, if any; then nothing is added.
  std::optional<std::string> add(std::string token, std::int32_t id) {
    if (static_cast<std::size_t>(id) >= tokens_.size()) tokens_.resize(static_cast<std::size_t>(id) + 1);
    if (tokens_[static_cast<std::size_t>(id)]) return *tokens_[static_cast<std::size_t>(id)];
    tokens_[static_cast<std::size_t>(id)] = token;
    ids_.emplace(std::move(token), id);
    return std::nullopt;
  }

  std::optional<std::int32_t> id_of(std::string_view token) const {
    const auto found = ids_.find(token);
    if (found == ids_.end()) return std::nullopt;
    return found->second;
  }
  // Null if no token has the id.
  const std::string* token_of(std::int32_t id) const {
    if (id < 0 || static_cast<std::size_t>(id) >= tokens_.size()) return nullptr;
    const auto& token = tokens_[static_cast<std::size_t>(id)];
    return token ? &*token : nullptr;
  }
  std::int32_t num_tokens() const { return static_cast<std::int32_t>(ids_.size()); }
  std::int32_t end_id() const { return static_cast<std::int32_t>(tokens_.size()); }  // the largest + 1

 private:
  IdOfToken ids_;
  std::vector<std::optional<std::string>> tokens_;
};

struct Merge {
  std::uint32_t rank;
  std::int32_t token;
};

// Maps pairs of tokens to the rank of their merge and the token it makes: open addressing, two or three probes per
// lookup.
class MergeTable {
 public:
  static constexpr std::uint32_t kNoRank = std::numeric_limits<std::uint32_t>::max();

  explicit MergeTable(std::size_t num_merges = 0) {
    std::size_t size = 16;
    while (size < 2 * num_merges) size *= 2;
    slots_.resize(size);
  }

  // At most as often as the constructor was told. A pair already present is overwritten: the last one wins.
  void add(std::int32_t left, std::int32_t right, Merge merge) {
    Slot& slot = slots_[place(left, right)];
    slot = {left, right, merge};
  }

  // Rank kNoRank if there is no such merge.
  Merge find(std::int32_t left, std::int32_t right) const { return slots_[place(left, right)].merge; }

 private:
  struct Slot {
    std::int32_t left = -1, right = -1;
    Merge merge{kNoRank, -1};
  };

  std::size_t place(std::int32_t left, std::int32_t right) const {
    const std::uint64_t key =
        static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
    std::uint64_t hash = key * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 32;
    std::size_t at = hash & (slots_.size() - 1);
    while (slots_[at].left != -1 && (slots_[at].left != left || slots_[at].right != right)) {
      at = (at + 1) & (slots_.size() - 1);
    }
    return at;
  }

  std::vector<Slot> slots_;
};

// Caches the tokens of short pieces, so that the common words of a text are merged once. Used by one thread at a time.
//
// Direct-mapped: a new piece replaces an old one, so there is nothing to grow, clear or attack. An entry is one cache
// line; pieces or results that do not fit are simply not cached.
class WordCache {
 public:
  static constexpr std::size_t kMaxKeyBytes = 31, kMaxTokens = 7;

  struct Key {
    std::uint64_t words[4] = {0, 0, 0, 0};  // the bytes, zeros, and the length as the last byte
    bool operator==(const Key& other) const {
      return ((words[0] ^ other.words[0]) | (words[1] ^ other.words[1]) | (words[2] ^ other.words[2]) |
              (words[3] ^ other.words[3])) == 0;
    }
  };

  // `piece` has 1 to kMaxKeyBytes bytes.
  static Key key_of(std::string_view piece) {
    unsigned char bytes[32] = {};
    std::memcpy(bytes, piece.data(), piece.size());
    bytes[31] = static_cast<unsigned char>(piece.size());
    Key key;
    std::memcpy(key.words, bytes, sizeof bytes);
    return key;
  }

  // Empty: not known. Valid until the next insert().
  std::span<const std::int32_t> find(const Key& key) const {
    const Entry& entry = entries_[place(key)];
    if (!(entry.key == key)) return {};
    return {entry.tokens, static_cast<std::size_t>(entry.num_tokens)};
  }

  void insert(const Key& key, std::span<const std::int32_t> tokens) {
    if (tokens.empty() || tokens.size() > kMaxTokens) return;
    Entry& entry = entries_[place(key)];
    entry.key = key;
    entry.num_tokens = static_cast<std::int32_t>(tokens.size());
    std::memcpy(entry.tokens, tokens.data(), tokens.size_bytes());
  }

 private:
  struct alignas(64) Entry {
    Key key;
    std::int32_t num_tokens = 0;
    std::int32_t tokens[kMaxTokens] = {};
  };
  static_assert(sizeof(Entry) == 64);
  static constexpr std::size_t kNumEntries = 1 << 15;  // 2 MB: the second-level cache of most processors

  static std::size_t place(const Key& key) {
    std::uint64_t hash = key.words[0] * 0x9E3779B97F4A7C15ULL;
    hash = (hash ^ (hash >> 29) ^ key.words[1]) * 0xBF58476D1CE4E5B9ULL;
    hash = (hash ^ (hash >> 32) ^ key.words[2]) * 0x94D049BB133111EBULL;
    hash = (hash ^ (hash >> 31) ^ key.words[3]) * 0x9E3779B97F4A7C15ULL;
    return (hash >> 40) & (kNumEntries - 1);
  }

  std::vector<Entry> entries_ = std::vector<Entry>(kNumEntries);
};

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

  // From now on pieces are bytes, and the vocabulary's characters stand for them. Returns false if this
  // model needs characters.
  bool read_bytes();

  void encode(std::string_view piece, BpeScratch& scratch, std::vector<std::int32_t>& ids) const;
  const Vocabulary& vocabulary() const { return vocabulary_; }
  // How many bytes of a piece became this token; 0: it stands for unknown ones.
  std::size_t num_bytes_of(std::int32_t id) const;

 private:
  struct Unknown;
  void find_cuts(const MergePairs& merges);
  void encode_word(std::string_view piece, BpeScratch& scratch, std::vector<std::int32_t>& ids) const;
  void add_characters(std::string_view piece, std::vector<std::int32_t>& symbols) const;
  void add_character(std::string_view character, std::int32_t id, Unknown& unknown,
                     std::vector<std::int32_t>& symbols) const;
  std::int32_t id_of_character(std::string_view character) const;
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
  WordCuts cuts_;
  static constexpr char32_t kNumCharactersInTable = 0xD800;  // up to the surrogates: nearly all of any text
  std::vector<std::int32_t> token_of_character_ = std::vector<std::int32_t>(kNumCharactersInTable, -1);
  std::array<std::int32_t, 256> fallback_tokens_{};  // <0x00> to <0xFF>; -1: none
  IdOfToken whole_pieces_;                           // by their bytes, for ignore_merges
};

// Tables are as long as the largest id: a bound keeps a broken file from exhausting the memory.
inline constexpr std::int32_t kMaxTokenId = (1 << 22) - 1;
inline std::int32_t as_token_id(const JsonReader& value) {
  return static_cast<std::int32_t>(value.as_integer(0, kMaxTokenId));
}

// "model" of tokenizer.json.
Bpe read_bpe(const JsonReader& component);
// vocab.json and the lines of merges.txt.
Vocabulary read_vocabulary(const JsonReader& component);
MergePairs parse_merges(std::string_view text, const std::string& origin);

}  // namespace tessera::internal

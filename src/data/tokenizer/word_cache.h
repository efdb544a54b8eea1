// Caches the tokens of short pieces, so that the common words of a text are merged once. Used by one thread at a time.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace tessera::internal {

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

}  // namespace tessera::internal

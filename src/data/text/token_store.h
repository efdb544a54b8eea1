// Tokenised sequences in one block of bytes: a file mapped into memory, or the same bytes in memory.
//
// Made once by a Builder, then immutable: any number of threads may read. The format, little-endian: a header of 128
// bytes (see the source file), int64 offsets [rows + 1], int32 ids [tokens], int32 targets [tokens]. The header holds
// the key the file was made for and a checksum of everything else; both are checked when the file is opened.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// XXH64, by the xxHash library: fast rather than secret, several GB/s.
std::uint64_t xxh64(std::string_view bytes, std::uint64_t seed = 0);
// A name for contents: 32 hexadecimal digits, XXH64 twice with two seeds. Equal bytes have equal names, different bytes
// different ones (except by an accident of 1 in 2^128).
std::string content_name(std::string_view bytes);

// Of all sequences of a store.
struct TokenCounts {
  std::int64_t num_rows = 0;
  std::int64_t num_tokens = 0;
  std::int64_t num_counted = 0;       // targets that count for the loss
  std::int64_t num_truncated = 0;     // sequences that had to be cut
  std::int64_t longest = 0;           // tokens
  std::int64_t num_rows_of_file = 0;  // before a subset was taken
};

class TokenStore {
 public:
  // What is wrong with the bytes, as text; empty: they are a valid store made for `key`.
  static std::string mistake_in(std::string_view bytes, const std::string& key);
  // The bytes must be valid.
  static TokenStore of_bytes(std::string bytes);
  // Nothing if the file is absent, damaged or made for another key; `mistake` then says which (empty: absent).
  static std::optional<TokenStore> open(const std::filesystem::path& path, const std::string& key,
                                        std::string* mistake = nullptr);

  const TokenCounts& counts() const { return counts_; }
  std::int64_t size() const { return counts_.num_rows; }
  std::int64_t length(std::int64_t row) const { return offsets_[row + 1] - offsets_[row]; }
  std::span<const std::int32_t> ids(std::int64_t row) const { return {ids_ + offsets_[row], length_of(row)}; }
  std::span<const std::int32_t> targets(std::int64_t row) const { return {targets_ + offsets_[row], length_of(row)}; }
  bool is_mapped() const { return is_mapped_; }

 private:
  TokenStore(std::shared_ptr<const void> owner, std::string_view bytes, bool is_mapped);
  std::size_t length_of(std::int64_t row) const { return static_cast<std::size_t>(length(row)); }

  std::shared_ptr<const void> owner_;  // of the bytes: a mapping or a string
  bool is_mapped_;
  TokenCounts counts_;
  const std::int64_t* offsets_;
  const std::int32_t *ids_, *targets_;
};

// Collects sequences and returns the bytes of a store.
class TokenStoreBuilder {
 public:
  void add(std::span<const std::int32_t> ids, std::span<const std::int32_t> targets, bool is_truncated);
  // `key`: at most 32 bytes.
  std::string bytes(const std::string& key, std::int64_t num_rows_of_file) const;

 private:
  TokenCounts counts_;
  std::vector<std::int64_t> offsets_ = {0};
  std::vector<std::int32_t> ids_, targets_;
};

}  // namespace tessera

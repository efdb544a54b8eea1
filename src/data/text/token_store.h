// Tokenised sequences in one block of bytes: a file mapped into memory, or the same bytes in memory.
//
// Made once by a TokenStoreBuilder, then immutable: any number of threads may read. The layout is in token_format.h: 4
// bytes per token, and a bit per token where not every one counts for the loss.
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

// Of all sequences of a store.
struct TokenCounts {
  std::int64_t num_rows = 0;
  std::int64_t num_tokens = 0;
  std::int64_t num_counted = 0;       // targets that count for the loss
  std::int64_t num_truncated = 0;     // sequences that had to be cut
  std::int64_t longest = 0;           // tokens
  std::int64_t num_rows_of_file = 0;  // before a subset was taken
  std::int64_t num_dropped = 0;       // rows of the file of which nothing was kept
  std::int64_t largest_id = -1;       // of the ids and targets; -1: there are none

  void add(const TokenCounts& more);
};

// What the positions of a store have to predict.
enum class TargetForm : std::uint64_t {
  kEveryNext,    // each the next token of its row
  kCountedNext,  // the next token, where that one counts for the loss: one bit per token
  kExplicit,     // any token: stored beside the ids
};

// When the checksums are compared. kWhenRead: those of a block of 64 KiB when something in it is read for the first
// time; a damaged block is an Error that names the file, which is removed, so that the next start makes it again.
enum class Verify { kNow, kWhenRead };

// Some tokens of a row, or all. What follows them does not exist for whoever asks about the piece: its last position
// predicts nothing where the piece ends before its row.
struct TokenPiece {
  std::int64_t row = 0;
  std::int32_t begin = 0, length = 0;

  bool operator==(const TokenPiece&) const = default;
};

class TokenStore {
 public:
  // What is wrong with the bytes, as text; empty: they are a valid store made for `key`. kWhenRead: without the blocks.
  static std::string mistake_in(std::string_view bytes, const std::string& key, Verify verify = Verify::kNow);
  // The bytes must be valid.
  static TokenStore of_bytes(std::string bytes);
  // Nothing if the file is absent, damaged or made for another key; `mistake` then says which (empty: absent).
  static std::optional<TokenStore> open(const std::filesystem::path& path, const std::string& key,
                                        std::string* mistake = nullptr, Verify verify = Verify::kNow);

  const TokenCounts& counts() const { return counts_; }
  TargetForm target_form() const { return form_; }
  bool is_mapped() const { return is_mapped_; }

  std::int64_t size() const { return counts_.num_rows; }
  std::int64_t length(std::int64_t row) const { return range_of(row).length; }
  TokenPiece whole(std::int64_t row) const { return {row, 0, static_cast<std::int32_t>(length(row))}; }
  std::span<const std::int32_t> ids(const TokenPiece& piece) const;
  // The target of each position, kIgnoredTarget where none counts. `to` has room for the piece's length.
  void copy_targets(const TokenPiece& piece, std::int64_t* to) const;
  void copy_targets(const TokenPiece& piece, std::int32_t* to) const;
  std::int64_t num_counted(const TokenPiece& piece) const;
  // Whether this token counts for the loss where a position before it, perhaps of another row, predicts it. Of a row's
  // first token: whether all of its row do. Never with explicit targets.
  bool counts_as_target(std::int64_t row, std::int64_t place) const;

  // Of a whole row.
  std::span<const std::int32_t> ids(std::int64_t row) const { return ids(whole(row)); }
  std::vector<std::int32_t> targets(std::int64_t row) const;
  std::int64_t num_counted(std::int64_t row) const { return num_counted(whole(row)); }

 private:
  struct BlockChecks;
  struct Range {
    std::int64_t begin = 0, length = 0;
  };

  TokenStore(std::shared_ptr<const void> owner, std::string_view bytes, bool is_mapped);
  Range range_of(std::int64_t row) const;
  Range range_of(const TokenPiece& piece) const;
  template <typename Number>
  void write_targets(const TokenPiece& piece, Number* to) const;
  void check(const void* begin, std::int64_t num_bytes) const;  // before they are read
  void check_bits(std::int64_t begin, std::int64_t count) const;

  std::shared_ptr<const void> owner_;    // of the bytes: a mapping or a string
  std::shared_ptr<BlockChecks> checks_;  // null: everything has been verified
  bool is_mapped_;
  TokenCounts counts_;
  TargetForm form_;
  const std::int64_t* offsets_;
  const std::int32_t* ids_;
  const std::uint64_t* counted_ = nullptr;  // kCountedNext
  const std::int32_t* targets_ = nullptr;   // kExplicit
};

}  // namespace tessera

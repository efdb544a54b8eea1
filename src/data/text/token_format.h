// The layout of a token store's bytes, little-endian:
//   header                128 bytes
//   checksums of blocks   uint64 per 64 KiB of what follows
//   offsets               int64 [rows + 1]: where each row begins, in tokens
//   ids                   int32 [tokens]
//   targets               nothing, or bits [tokens] in uint64 words, or int32 [tokens]: the header says which
// Each part begins at a multiple of 8. The header's checksum covers the header and the checksums of the blocks, so that
// a large store opens at once and is verified block by block, where it is read.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "data/text/bit_runs.h"
#include "data/text/token_store.h"

namespace tessera::internal {

// Raise the number when the format or the meaning of the tokens changes.
inline constexpr char kTokenMagic[8] = {'T', 'E', 'S', 'S', 'T', 'O', 'K', '2'};

// Small enough that a row read at random costs little more than the disk's own read-ahead, large enough that the
// checksums are 1/8192 of the data.
inline constexpr std::size_t kTokenBlockBytes = std::size_t{64} << 10;

struct TokenHeader {
  char magic[8];
  std::uint64_t checksum;  // of the rest of the header and of the checksums of the blocks
  char key[32];
  TokenCounts counts;
  std::uint64_t target_form;  // a TargetForm
  char reserved[128 - 56 - sizeof(TokenCounts)];
};
static_assert(sizeof(TokenHeader) == 128 && alignof(TokenHeader) == 8);
inline constexpr std::size_t kTokenChecksumEnd = offsetof(TokenHeader, key);

// More rows and tokens than any file can hold: below this the sizes do not overflow.
inline constexpr std::int64_t kMostTokens = std::int64_t{1} << 56;

// Where the parts begin, in bytes from the start.
struct TokenLayout {
  std::size_t checksums = sizeof(TokenHeader), data = 0, ids = 0, targets = 0, end = 0;
  std::size_t num_blocks = 0;

  TokenLayout(const TokenCounts& counts, TargetForm form) {
    const auto padded = [](std::size_t bytes) { return (bytes + 7) / 8 * 8; };
    const auto num_tokens = static_cast<std::size_t>(counts.num_tokens);
    const std::size_t offset_bytes = static_cast<std::size_t>(counts.num_rows + 1) * sizeof(std::int64_t);
    const std::size_t id_bytes = padded(num_tokens * sizeof(std::int32_t));
    const std::size_t target_bytes = form == TargetForm::kEveryNext ? 0
                                     : form == TargetForm::kCountedNext
                                         ? static_cast<std::size_t>(num_words_of_bits(counts.num_tokens)) * 8
                                         : id_bytes;
    const std::size_t data_bytes = offset_bytes + id_bytes + target_bytes;
    num_blocks = (data_bytes + kTokenBlockBytes - 1) / kTokenBlockBytes;
    data = checksums + num_blocks * sizeof(std::uint64_t);
    ids = data + offset_bytes;
    targets = ids + id_bytes;
    end = targets + target_bytes;
  }
};

inline TokenHeader token_header_of(std::string_view bytes) {
  TokenHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  return header;
}

}  // namespace tessera::internal

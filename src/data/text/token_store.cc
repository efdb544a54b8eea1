#include "data/text/token_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>

#include "core/error.h"
#include "core/file.h"
#include "data/text/content_hash.h"
#include "data/text/token_format.h"
#include "tessera/ignored_target.h"

namespace tessera {

using internal::kMostTokens;
using internal::kTokenBlockBytes;
using internal::TokenHeader;
using internal::TokenLayout;

// Which blocks of a store have been verified. Two threads may verify the same one; both find the same.
struct TokenStore::BlockChecks {
  std::filesystem::path path;
  std::string_view data;  // what the blocks divide
  const char* checksums;
  std::vector<std::atomic<std::uint8_t>> is_verified;

  BlockChecks(std::filesystem::path of_path, std::string_view bytes, const TokenLayout& layout)
      : path(std::move(of_path)),
        data(bytes.substr(layout.data)),
        checksums(bytes.data() + layout.checksums),
        is_verified(layout.num_blocks) {}

  bool is_sound(std::size_t block) const {
    std::uint64_t expected;
    std::memcpy(&expected, checksums + block * sizeof expected, sizeof expected);
    return xxh64(data.substr(block * kTokenBlockBytes, kTokenBlockBytes)) == expected;
  }

  void verify(std::size_t block) {
    if (!is_sound(block)) {
      ::unlink(path.c_str());
      throw Error(
          fmt::format("the cache file {} is damaged: the checksum of its 64 KiB at byte {} is wrong; it has been "
                      "removed, start again and it is made again",
                      path.string(), data.data() - checksums + sizeof(TokenHeader) + block * kTokenBlockBytes));
    }
    is_verified[block].store(1, std::memory_order_relaxed);
  }
};

namespace {

// Offsets begin at 0, never decrease, and end with the number of tokens.
bool offsets_are_sound(std::string_view offsets, const TokenCounts& counts) {
  std::int64_t last = 0;
  for (std::int64_t i = 0; i <= counts.num_rows; ++i) {
    std::int64_t offset;
    std::memcpy(&offset, offsets.data() + static_cast<std::size_t>(i) * sizeof offset, sizeof offset);
    if (offset < last || (i == 0 && offset != 0)) return false;
    last = offset;
  }
  return last == counts.num_tokens;
}

struct MappedFile {
  std::shared_ptr<const void> owner;  // null: there is no such file, or it is empty
  std::string_view bytes;
};

// Throws Error if the system cannot read the file.
MappedFile map_file(const std::filesystem::path& path) {
  const auto fail = [&] {
    throw Error(fmt::format("cannot read {}: {}", path.string(), std::generic_category().message(errno)));
  };
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && (errno == ENOENT || errno == ENOTDIR)) return {};
  struct stat facts;
  if (!file || ::fstat(file.get(), &facts) != 0) fail();
  const auto size = static_cast<std::size_t>(facts.st_size);
  if (size == 0) return {};
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) fail();
  return {{address, [size](void* begin) { ::munmap(begin, size); }}, {static_cast<const char*>(address), size}};
}

// The token after each position of a piece, where the bit of that token is set; the last position has none. Runs of
// equal bits are the rule (a prompt, then an answer), so most words need no look at single bits.
template <typename Number>
void write_counted(const std::int32_t* ids, const std::uint64_t* counted, std::int64_t begin, std::int64_t count,
                   Number* to) {
  for (std::int64_t i = 0; i < count; i += 64) {
    const std::int64_t num = std::min<std::int64_t>(64, count - i);
    const std::uint64_t bits = bits_from(counted, begin + i, num);
    const std::int32_t* from = ids + begin + i;
    if (bits == 0) {
      std::fill_n(to + i, num, Number{kIgnoredTarget});
    } else if (bits == low_bits(num)) {
      std::copy_n(from, num, to + i);
    } else {
      for (std::int64_t j = 0; j < num; ++j) to[i + j] = (bits >> j & 1) != 0 ? from[j] : kIgnoredTarget;
    }
  }
}

}  // namespace

void TokenCounts::add(const TokenCounts& more) {
  num_rows += more.num_rows;
  num_tokens += more.num_tokens;
  num_counted += more.num_counted;
  num_truncated += more.num_truncated;
  longest = std::max(longest, more.longest);
  num_rows_of_file += more.num_rows_of_file;
  num_dropped += more.num_dropped;
  largest_id = std::max(largest_id, more.largest_id);
}

std::string TokenStore::mistake_in(std::string_view bytes, const std::string& key, Verify verify) {
  if (bytes.size() < sizeof(TokenHeader)) return "it is shorter than its header";
  const TokenHeader header = internal::token_header_of(bytes);
  if (std::memcmp(header.magic, internal::kTokenMagic, sizeof header.magic) != 0) {
    return "it is of another kind or version";
  }
  const TokenCounts& counts = header.counts;
  if (header.target_form > static_cast<std::uint64_t>(TargetForm::kExplicit)) return "its form of targets is unknown";
  const bool is_possible = counts.num_rows >= 0 && counts.num_tokens >= 0 && counts.num_rows <= kMostTokens &&
                           counts.num_tokens <= kMostTokens;
  const TokenLayout layout(is_possible ? counts : TokenCounts{}, static_cast<TargetForm>(header.target_form));
  if (!is_possible || bytes.size() != layout.end) {
    return fmt::format("its size of {} bytes is not the one in its header", bytes.size());
  }
  if (xxh64(bytes.substr(internal::kTokenChecksumEnd, layout.data - internal::kTokenChecksumEnd)) != header.checksum) {
    return "its checksum is wrong";
  }
  const std::string_view found(header.key, ::strnlen(header.key, sizeof header.key));
  if (found != key) return "it was made for other data";
  if (verify == Verify::kWhenRead) return "";
  const BlockChecks checks({}, bytes, layout);
  for (std::size_t block = 0; block < layout.num_blocks; ++block) {
    if (!checks.is_sound(block)) return "its checksum is wrong";
  }
  return offsets_are_sound(bytes.substr(layout.data), counts) ? "" : "its offsets are wrong";
}

TokenStore::TokenStore(std::shared_ptr<const void> owner, std::string_view bytes, bool is_mapped)
    : owner_(std::move(owner)), is_mapped_(is_mapped) {
  const TokenHeader header = internal::token_header_of(bytes);
  counts_ = header.counts;
  form_ = static_cast<TargetForm>(header.target_form);
  // Whole pages or operator new: aligned for all types; so are the parts, at multiples of 8.
  const TokenLayout layout(counts_, form_);
  offsets_ = reinterpret_cast<const std::int64_t*>(bytes.data() + layout.data);
  ids_ = reinterpret_cast<const std::int32_t*>(bytes.data() + layout.ids);
  const char* const targets = bytes.data() + layout.targets;
  if (form_ == TargetForm::kCountedNext) counted_ = reinterpret_cast<const std::uint64_t*>(targets);
  if (form_ == TargetForm::kExplicit) targets_ = reinterpret_cast<const std::int32_t*>(targets);
}

TokenStore TokenStore::of_bytes(std::string bytes) {
  const auto owner = std::make_shared<const std::string>(std::move(bytes));
  return TokenStore(owner, *owner, false);
}

std::optional<TokenStore> TokenStore::open(const std::filesystem::path& path, const std::string& key,
                                           std::string* mistake, Verify verify) {
  const MappedFile file = map_file(path);
  const std::string wrong = file.owner == nullptr ? "" : mistake_in(file.bytes, key, verify);
  if (mistake != nullptr) *mistake = wrong;
  if (file.owner == nullptr || !wrong.empty()) return std::nullopt;
  TokenStore store(file.owner, file.bytes, true);
  if (verify == Verify::kWhenRead) {
    store.checks_ = std::make_shared<BlockChecks>(path, file.bytes, TokenLayout(store.counts_, store.form_));
  }
  return store;
}

void TokenStore::check(const void* begin, std::int64_t num_bytes) const {
  if (checks_ == nullptr || num_bytes == 0) return;
  const auto first = static_cast<std::size_t>(static_cast<const char*>(begin) - checks_->data.data());
  const std::size_t last_block = (first + static_cast<std::size_t>(num_bytes) - 1) / kTokenBlockBytes;
  for (std::size_t block = first / kTokenBlockBytes; block <= last_block; ++block) {
    if (checks_->is_verified[block].load(std::memory_order_relaxed) == 0) checks_->verify(block);
  }
}

void TokenStore::check_bits(std::int64_t begin, std::int64_t count) const {
  if (count > 0) check(counted_ + begin / 64, ((begin + count - 1) / 64 - begin / 64 + 1) * 8);
}

TokenStore::Range TokenStore::range_of(std::int64_t row) const {
  check(offsets_ + row, 2 * sizeof(std::int64_t));
  const std::int64_t begin = offsets_[row], end = offsets_[row + 1];
  if (begin < 0 || begin > end || end > counts_.num_tokens) throw Error("the offsets of a token store are wrong");
  return {begin, end - begin};
}

TokenStore::Range TokenStore::range_of(const TokenPiece& piece) const {
  const Range row = range_of(piece.row);
  if (piece.begin < 0 || piece.length < 0 || piece.begin + piece.length > row.length) {
    throw Error(
        fmt::format("a piece of {} tokens from {} is not in a row of {}", piece.length, piece.begin, row.length));
  }
  return {row.begin + piece.begin, piece.length};
}

std::span<const std::int32_t> TokenStore::ids(const TokenPiece& piece) const {
  const Range range = range_of(piece);
  check(ids_ + range.begin, range.length * 4);
  return {ids_ + range.begin, static_cast<std::size_t>(range.length)};
}

template <typename Number>
void TokenStore::write_targets(const TokenPiece& piece, Number* to) const {
  const auto [begin, length] = range_of(piece);
  if (length == 0) return;
  check((form_ == TargetForm::kExplicit ? targets_ : ids_) + begin, length * 4);
  switch (form_) {
    case TargetForm::kEveryNext:
      std::copy_n(ids_ + begin + 1, length - 1, to);
      break;
    case TargetForm::kCountedNext:
      check_bits(begin + 1, length - 1);
      write_counted(ids_, counted_, begin + 1, length - 1, to);
      break;
    case TargetForm::kExplicit:
      std::copy_n(targets_ + begin, length, to);
      if (piece.begin + length == range_of(piece.row).length) return;
  }
  to[length - 1] = kIgnoredTarget;
}

void TokenStore::copy_targets(const TokenPiece& piece, std::int64_t* to) const {
  write_targets(piece, to);
}

void TokenStore::copy_targets(const TokenPiece& piece, std::int32_t* to) const {
  write_targets(piece, to);
}

std::int64_t TokenStore::num_counted(const TokenPiece& piece) const {
  const auto [begin, length] = range_of(piece);
  if (length == 0 || form_ == TargetForm::kEveryNext) return std::max<std::int64_t>(0, length - 1);
  if (form_ == TargetForm::kCountedNext) {
    check_bits(begin + 1, length - 1);
    return num_bits_set(counted_, begin + 1, length - 1);
  }
  check(targets_ + begin, length * 4);
  const bool is_cut = piece.begin + length < range_of(piece.row).length;
  const std::int64_t num_targets = is_cut ? length - 1 : length;
  return num_targets - std::count(targets_ + begin, targets_ + begin + num_targets, kIgnoredTarget);
}

bool TokenStore::counts_as_target(std::int64_t row, std::int64_t place) const {
  const std::int64_t token = range_of(TokenPiece{row, static_cast<std::int32_t>(place), 1}).begin;
  if (form_ != TargetForm::kCountedNext) return form_ == TargetForm::kEveryNext;
  check_bits(token, 1);
  return bit_at(counted_, token);
}

std::vector<std::int32_t> TokenStore::targets(std::int64_t row) const {
  std::vector<std::int32_t> all(static_cast<std::size_t>(length(row)));
  copy_targets(whole(row), all.data());
  return all;
}

}  // namespace tessera

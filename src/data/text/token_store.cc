#include "data/text/token_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL  // no library to link
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "core/error.h"
#include "core/file.h"
#include "data/text/qa_sequence.h"

namespace tessera {

namespace {

// Raise the number when the format or the meaning of the tokens changes.
constexpr char kMagic[8] = {'T', 'E', 'S', 'S', 'T', 'O', 'K', '1'};

struct Header {
  char magic[8];
  std::uint64_t checksum;  // of all bytes after this word
  char key[32];
  TokenCounts counts;
  char reserved[128 - 48 - sizeof(TokenCounts)];
};
static_assert(sizeof(Header) == 128 && alignof(Header) == 8);
constexpr std::size_t kChecksumEnd = offsetof(Header, key);

// More rows and tokens than any file can hold: below this the sizes do not overflow.
constexpr std::int64_t kMaxCount = std::int64_t{1} << 56;

std::size_t bytes_of(const TokenCounts& counts) {
  return sizeof(Header) + static_cast<std::size_t>(counts.num_rows + 1) * sizeof(std::int64_t) +
         static_cast<std::size_t>(counts.num_tokens) * 2 * sizeof(std::int32_t);
}

Header header_of(std::string_view bytes) {
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  return header;
}

// Offsets begin at 0, never decrease, and end with the number of tokens.
bool offsets_are_sound(std::string_view bytes, const TokenCounts& counts) {
  std::int64_t last = 0;
  for (std::int64_t i = 0; i <= counts.num_rows; ++i) {
    std::int64_t offset;
    std::memcpy(&offset, bytes.data() + sizeof(Header) + static_cast<std::size_t>(i) * sizeof offset, sizeof offset);
    if (offset < last || (i == 0 && offset != 0)) return false;
    last = offset;
  }
  return last == counts.num_tokens;
}

void put(std::string& bytes, std::size_t& at, const void* data, std::size_t size) {
  if (size > 0) std::memcpy(bytes.data() + at, data, size);
  at += size;
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

}  // namespace

std::uint64_t xxh64(std::string_view bytes, std::uint64_t seed) {
  return XXH64(bytes.data(), bytes.size(), seed);
}

std::string content_name(std::string_view bytes) {
  constexpr std::uint64_t kSecondSeed = 0x165667B19E3779F9;
  return fmt::format("{:016x}{:016x}", xxh64(bytes, 0), xxh64(bytes, kSecondSeed));
}

std::string TokenStore::mistake_in(std::string_view bytes, const std::string& key) {
  if (bytes.size() < sizeof(Header)) return "it is shorter than its header";
  const Header header = header_of(bytes);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) return "it is of another kind or version";
  const TokenCounts& counts = header.counts;
  if (counts.num_rows < 0 || counts.num_tokens < 0 || counts.num_rows > kMaxCount || counts.num_tokens > kMaxCount ||
      bytes.size() != bytes_of(counts)) {
    return fmt::format("its size of {} bytes is not the one in its header", bytes.size());
  }
  if (xxh64(bytes.substr(kChecksumEnd)) != header.checksum) return "its checksum is wrong";
  const std::string_view found(header.key, ::strnlen(header.key, sizeof header.key));
  if (found != key) return "it was made for other data";
  return offsets_are_sound(bytes, counts) ? "" : "its offsets are wrong";
}

TokenStore::TokenStore(std::shared_ptr<const void> owner, std::string_view bytes, bool is_mapped)
    : owner_(std::move(owner)), is_mapped_(is_mapped), counts_(header_of(bytes).counts) {
  // Whole pages or operator new: aligned for both types; so are the parts, since the header has 128 bytes.
  offsets_ = reinterpret_cast<const std::int64_t*>(bytes.data() + sizeof(Header));
  ids_ = reinterpret_cast<const std::int32_t*>(offsets_ + counts_.num_rows + 1);
  targets_ = ids_ + counts_.num_tokens;
}

TokenStore TokenStore::of_bytes(std::string bytes) {
  const auto owner = std::make_shared<const std::string>(std::move(bytes));
  return TokenStore(owner, *owner, false);
}

std::optional<TokenStore> TokenStore::open(const std::filesystem::path& path, const std::string& key,
                                           std::string* mistake) {
  const MappedFile file = map_file(path);
  const std::string wrong = file.owner == nullptr ? "" : mistake_in(file.bytes, key);
  if (mistake != nullptr) *mistake = wrong;
  if (file.owner == nullptr || !wrong.empty()) return std::nullopt;
  return TokenStore(file.owner, file.bytes, true);
}

void TokenStoreBuilder::add(std::span<const std::int32_t> ids, std::span<const std::int32_t> targets,
                            bool is_truncated) {
  if (ids.size() != targets.size()) throw Error("a sequence needs as many targets as tokens");
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  targets_.insert(targets_.end(), targets.begin(), targets.end());
  offsets_.push_back(std::ssize(ids_));
  ++counts_.num_rows;
  counts_.num_tokens += std::ssize(ids);
  counts_.num_counted += std::ssize(targets) - std::count(targets.begin(), targets.end(), kIgnoredTarget);
  counts_.num_truncated += is_truncated ? 1 : 0;
  counts_.longest = std::max<std::int64_t>(counts_.longest, std::ssize(ids));
}

std::string TokenStoreBuilder::bytes(const std::string& key, std::int64_t num_rows_of_file) const {
  Header header = {};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  if (key.size() > sizeof header.key) throw Error("the key of a token store has at most 32 bytes");
  std::memcpy(header.key, key.data(), key.size());
  header.counts = counts_;
  header.counts.num_rows_of_file = num_rows_of_file;

  std::string bytes(bytes_of(counts_), '\0');
  std::size_t at = sizeof header;
  put(bytes, at, offsets_.data(), offsets_.size() * sizeof(std::int64_t));
  put(bytes, at, ids_.data(), ids_.size() * sizeof(std::int32_t));
  put(bytes, at, targets_.data(), targets_.size() * sizeof(std::int32_t));
  std::memcpy(bytes.data(), &header, sizeof header);
  header.checksum = xxh64(std::string_view(bytes).substr(kChecksumEnd));
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

}  // namespace tessera

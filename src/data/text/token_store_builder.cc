#include "data/text/token_store_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "data/text/content_hash.h"
#include "data/text/token_format.h"
#include "tessera/ignored_target.h"

namespace tessera {

using internal::kTokenBlockBytes;
using internal::TokenHeader;
using internal::TokenLayout;

namespace {

using RowIds = std::span<const std::int32_t>;

bool are_next_tokens(RowIds ids, RowIds targets) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (targets[i] != kIgnoredTarget && (i + 1 == ids.size() || targets[i] != ids[i + 1])) return false;
  }
  return true;
}

// Which tokens these targets count. A row's first token has no position before it: it counts where all others do.
std::vector<bool> counted_by(RowIds targets) {
  std::vector<bool> counted(targets.size());
  for (std::size_t i = 1; i < targets.size(); ++i) counted[i] = targets[i - 1] != kIgnoredTarget;
  if (!counted.empty())
    counted[0] = std::all_of(counted.begin() + 1, counted.end(), [](bool counts) { return counts; });
  return counted;
}

void put(std::string& bytes, std::size_t at, const auto& numbers) {
  if (!numbers.empty()) std::memcpy(bytes.data() + at, numbers.data(), numbers.size() * sizeof numbers[0]);
}

}  // namespace

void TokenStoreBuilder::add(RowIds ids, RowIds targets, bool is_truncated) {
  if (ids.size() != targets.size()) throw Error("a sequence needs as many targets as tokens");
  if (are_next_tokens(ids, targets) && form_ != TargetForm::kExplicit) {
    add_counted(ids, counted_by(targets), is_truncated);
    return;
  }
  need_targets();
  add_ids(ids, is_truncated);
  targets_.insert(targets_.end(), targets.begin(), targets.end());
  for (const std::int32_t target : targets) {
    if (target == kIgnoredTarget) continue;
    ++counts_.num_counted;
    counts_.largest_id = std::max<std::int64_t>(counts_.largest_id, target);
  }
}

void TokenStoreBuilder::add_counted(RowIds ids, const std::vector<bool>& counted, bool is_truncated) {
  if (!counted.empty() && counted.size() != ids.size()) {
    throw Error("a sequence must say of each of its tokens whether it counts, or of none");
  }
  const std::int64_t length = std::ssize(ids);
  const std::int64_t num_set = counted.empty() ? length : std::count(counted.begin(), counted.end(), true);
  if (form_ == TargetForm::kExplicit) {
    std::vector<std::int32_t> targets(ids.size(), kIgnoredTarget);
    for (std::size_t i = 1; i < ids.size(); ++i) {
      if (counted.empty() || counted[i]) targets[i - 1] = ids[i];
    }
    add(ids, targets, is_truncated);
    return;
  }
  if (num_set < length) need_bits();
  add_ids(ids, is_truncated);
  counts_.num_counted += num_set - (num_set > 0 && (counted.empty() || counted[0]) ? 1 : 0);
  if (form_ != TargetForm::kCountedNext) return;
  if (num_set == length) {
    counted_.add_ones(length);
    return;
  }
  for (std::size_t i = 0; i < counted.size(); i += 64) {
    const std::size_t end = std::min(counted.size(), i + 64);
    std::uint64_t bits = 0;
    for (std::size_t j = i; j < end; ++j) bits |= std::uint64_t{counted[j]} << (j - i);
    counted_.add(bits, static_cast<std::int64_t>(end - i));
  }
}

void TokenStoreBuilder::add_ids(RowIds ids, bool is_truncated) {
  if (ids.size() > std::numeric_limits<std::int32_t>::max()) {
    throw Error(fmt::format("a row of {} tokens is too long: at most 2^31 - 1", ids.size()));
  }
  for (const std::int32_t id : ids) {
    if (id < 0) throw Error(fmt::format("a token cannot have the number {}", id));
    counts_.largest_id = std::max<std::int64_t>(counts_.largest_id, id);
  }
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  offsets_.push_back(std::ssize(ids_));
  ++counts_.num_rows;
  counts_.num_tokens += std::ssize(ids);
  counts_.num_truncated += is_truncated ? 1 : 0;
  counts_.longest = std::max<std::int64_t>(counts_.longest, std::ssize(ids));
}

// The first row that does not count as a whole: those before it do.
void TokenStoreBuilder::need_bits() {
  if (form_ != TargetForm::kEveryNext) return;
  form_ = TargetForm::kCountedNext;
  counted_.add_ones(std::ssize(ids_));
}

// The first row with targets of its own: those before it get theirs.
void TokenStoreBuilder::need_targets() {
  if (form_ == TargetForm::kExplicit) return;
  targets_.assign(ids_.size(), kIgnoredTarget);
  for (std::size_t row = 0; row + 1 < offsets_.size(); ++row) {
    for (std::int64_t i = offsets_[row] + 1; i < offsets_[row + 1]; ++i) {
      const bool counts = form_ == TargetForm::kEveryNext || bit_at(counted_.words().data(), i);
      if (counts) targets_[static_cast<std::size_t>(i) - 1] = ids_[static_cast<std::size_t>(i)];
    }
  }
  form_ = TargetForm::kExplicit;
  counted_ = {};
}

std::string TokenStoreBuilder::bytes(const std::string& key, std::int64_t num_rows_of_file) const {
  TokenHeader header = {};
  std::memcpy(header.magic, internal::kTokenMagic, sizeof header.magic);
  if (key.size() > sizeof header.key) throw Error("the key of a token store has at most 32 bytes");
  std::memcpy(header.key, key.data(), key.size());
  header.counts = counts_;
  header.counts.num_rows_of_file = num_rows_of_file;
  header.target_form = static_cast<std::uint64_t>(form_);

  const TokenLayout layout(counts_, form_);
  std::string bytes(layout.end, '\0');
  put(bytes, layout.data, offsets_);
  put(bytes, layout.ids, ids_);
  put(bytes, layout.targets, counted_.words());
  put(bytes, layout.targets, targets_);
  const std::string_view data = std::string_view(bytes).substr(layout.data);
  std::vector<std::uint64_t> checksums;
  for (std::size_t block = 0; block < layout.num_blocks; ++block) {
    checksums.push_back(xxh64(data.substr(block * kTokenBlockBytes, kTokenBlockBytes)));
  }
  put(bytes, layout.checksums, checksums);
  std::memcpy(bytes.data(), &header, sizeof header);
  header.checksum =
      xxh64(std::string_view(bytes).substr(internal::kTokenChecksumEnd, layout.data - internal::kTokenChecksumEnd));
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

}  // namespace tessera

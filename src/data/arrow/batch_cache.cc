#include "data/arrow/batch_cache.h"

#include <arrow/util/byte_size.h>

#include <algorithm>

namespace tessera {
namespace {

// Of batches that were used: the next block needs at most the last one of each thread.
constexpr std::int64_t kMostUsedBytes = std::int64_t{64} << 20;
// Of all: what threads have skipped to come to their own block, which another thread is about to ask for. To decode it
// again would mean decoding its row group from the start.
constexpr std::int64_t kMostBytes = std::int64_t{512} << 20;

}  // namespace

void BatchCache::put(const Batch& batch, bool is_used) {
  const std::lock_guard lock(mutex_);
  Entry entry{batch, arrow::util::ReferencedBufferSize(*batch.rows).ValueOr(0), is_used};
  num_bytes_ += entry.num_bytes;
  if (!entries_.emplace(batch.first_row, entry).second) {
    num_bytes_ -= entry.num_bytes;
    return;
  }
  order_.push_back(batch.first_row);
  shrink();
}

std::optional<Batch> BatchCache::find(std::int64_t row) {
  const std::lock_guard lock(mutex_);
  auto entry = entries_.upper_bound(row);
  if (entry == entries_.begin()) return {};
  --entry;
  if (!entry->second.batch.has(row)) return {};
  entry->second.was_used = true;
  return entry->second.batch;
}

// Used ones first. The newest always stays.
void BatchCache::shrink() {
  for (const std::int64_t limit : {kMostUsedBytes, kMostBytes}) {
    const bool only_used = limit == kMostUsedBytes;
    for (auto at = order_.begin(); num_bytes_ > limit && at != order_.end() && *at != order_.back();) {
      const auto entry = entries_.find(*at);
      if (only_used && !entry->second.was_used) {
        ++at;
        continue;
      }
      num_bytes_ -= entry->second.num_bytes;
      entries_.erase(entry);
      at = order_.erase(at);
    }
  }
}

}  // namespace tessera

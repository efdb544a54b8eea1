// Batches that were decoded and will be asked for again: by the thread that reads the block before or behind, while
// another one already decodes further.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>

#include "data/arrow/batch_source.h"

namespace tessera {

// Of one file. Any number of threads.
class BatchCache {
 public:
  // `is_used`: the caller reads it now; else it was skipped on the way there.
  void put(const Batch& batch, bool is_used);
  std::optional<Batch> find(std::int64_t row);

 private:
  struct Entry {
    Batch batch;
    std::int64_t num_bytes = 0;
    bool was_used = false;
  };

  void shrink();

  std::mutex mutex_;
  std::map<std::int64_t, Entry> entries_;  // by first row
  std::deque<std::int64_t> order_;         // first rows, the oldest first
  std::int64_t num_bytes_ = 0;
};

}  // namespace tessera

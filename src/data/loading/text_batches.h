// Packed batches of a token store's rows, and a loader of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/loading/prefetch_loader.h"
#include "data/text/token_store.h"
#include "tessera/packed_batch.h"

namespace tessera {

struct PackOptions {
  bool pins = false;          // in page-locked memory, from which a GPU copies while it computes
  std::int64_t multiple = 1;  // of tokens: filled up to it by rows of which nothing is counted

  // A GPU's libraries choose how to multiply matrices of a new size anew, some 0.2 ms each, and keep the choice: with a
  // multiple the sizes repeat.
  static PackOptions of(const at::Device& device) { return device.is_cuda() ? PackOptions{true, 128} : PackOptions{}; }
  std::int64_t num_tokens(std::int64_t of_rows) const { return (of_rows + multiple - 1) / multiple * multiple; }
};

// The rows end to end, in the given order. May be called from any thread.
PackedBatch pack_rows(const TokenStore& tokens, std::span<const std::int64_t> rows, const PackOptions& options = {});

// Batches in order from number `begin`, made ahead by worker threads. The store must outlive the loader; `batches` come
// from Sampler::batches().
PrefetchLoader<PackedBatch> text_loader(const TokenStore& tokens, std::vector<std::vector<std::int64_t>> batches,
                                        std::int64_t begin = 0, PrefetchOptions options = {},
                                        const PackOptions& packing = {});

}  // namespace tessera

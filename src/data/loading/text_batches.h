// Packed batches of a token store's rows, and a loader of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/loading/prefetch_loader.h"
#include "data/text/token_store.h"
#include "tessera/packed_batch.h"

namespace tessera {

// The rows end to end, in the given order. May be called from any thread. `pins`: in page-locked memory, from which a
// GPU copies while it computes.
PackedBatch pack_rows(const TokenStore& tokens, std::span<const std::int64_t> rows, bool pins = false);

// Batches in order from number `begin`, made ahead by worker threads. The store must outlive the loader; `batches` come
// from Sampler::batches() or data/text/packing.h.
PrefetchLoader<PackedBatch> text_loader(const TokenStore& tokens, std::vector<std::vector<std::int64_t>> batches,
                                        std::int64_t begin = 0, PrefetchOptions options = {}, bool pins = false);

}  // namespace tessera

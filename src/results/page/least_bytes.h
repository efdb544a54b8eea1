// How much a run had to send, by docs/collectives.md. (no torch)
#pragma once

#include <optional>

#include "record/run_record.h"

namespace tessera {

// Bytes that the run's updates need for this operation and unit: the strategy's calls x bytes of a call. None: that
// page says nothing about it, as of the gradient norm.
std::optional<double> least_bytes(const RunRecord& run, const CollectiveRecord& collective);

}  // namespace tessera

// How much a run had to send, by docs/collectives.md. (no torch)
#pragma once

#include <optional>

#include "report/run_record.h"

namespace tessera {

// Bytes that the run's updates need for this operation and unit: calls per update of the strategy x updates x bytes of
// a call. None: the page says nothing about it, as of the gradient norm and of groups.
std::optional<double> least_bytes(const RunRecord& run, const CollectiveRecord& collective);

}  // namespace tessera

// A row of training data as tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "data/rows/row_stream.h"

namespace tessera {

struct EncodedRow {
  std::vector<std::int32_t> ids;
  std::vector<bool> counted;  // per token: whether it counts for the loss when it is predicted. Empty: all do
  bool is_truncated = false;
  bool is_dropped = false;  // it is only counted, nothing of it is kept
};

// Several where a document is longer than a sequence may be; none: the row is dropped. Called from several threads at a
// time; throws UsageError without naming the row, which whoever calls it does.
using EncodeRow = std::function<std::vector<EncodedRow>(const PlacedRow& row)>;

}  // namespace tessera

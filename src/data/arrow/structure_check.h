// Whether a batch from a file, which may be damaged or hostile, can be read without leaving its memory.
#pragma once

#include <arrow/api.h>

namespace tessera {

// Every length, offset and index. Not whether text is UTF-8: that is found value by value, where the row is known.
arrow::Status check_structure(const arrow::RecordBatch& batch);

}  // namespace tessera

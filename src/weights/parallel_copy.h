// Parts of mapped files into memory, by several threads.
#pragma once

#include <cstdint>
#include <vector>

#include "weights/mapped_file.h"

namespace tessera {

struct CopyJob {
  const MappedFile* file;
  std::int64_t offset_bytes, num_bytes;
  char* to;
};

// Returns when all is copied. What was copied leaves the map's share of the process's memory at once, so that the
// memory beyond `to` stays at a few MiB a thread.
void copy_from_files(const std::vector<CopyJob>& jobs, int num_threads);

}  // namespace tessera

// Copies parts of mapped files into memory with several threads.
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

// Returns when everything is copied. Copied pages are released from the map at once, so that the memory beyond `to`
// stays at a few MiB per thread.
void copy_from_files(const std::vector<CopyJob>& jobs, int num_threads);

}  // namespace tessera

// Copies parts of mapped files into memory with several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "weights/mapped_file.h"

namespace tessera {

struct CopyJob {
  const MappedFile* file;
  std::int64_t offset_bytes, num_bytes;
  char* to;
  // Sees each piece right after it was copied, while it is in the cache; called by several threads. Pieces begin and
  // end at multiples of 8 bytes from the job's start.
  std::function<void(const char* bytes, std::int64_t num_bytes)> look{};
};

// One part, by the calling thread.
void copy_from_file(const MappedFile& file, std::int64_t offset_bytes, std::int64_t num_bytes, char* to);

// Returns when everything is copied. Copied pages are released from the map at once, so that the memory beyond `to`
// stays at a few MiB per thread.
void copy_from_files(const std::vector<CopyJob>& jobs, int num_threads);

}  // namespace tessera

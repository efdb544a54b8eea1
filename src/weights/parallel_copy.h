// Copies parts of mapped files into memory with several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "weights/mapped_file.h"

namespace tessera {

// Sees the bytes in parts, each just before it is copied, so that they come from memory once. Parts begin at multiples
// of 8 bytes from the start of the copy.
using Look = std::function<void(const char* bytes, std::int64_t num_bytes)>;

struct CopyJob {
  const MappedFile* file;
  std::int64_t offset_bytes, num_bytes;
  char* to;
  Look look{};  // called by several threads
};

// By the calling thread.
void copy_from_file(const CopyJob& job);

// Returns when everything is copied. Copied pages are released from the map at once, so that the memory beyond `to`
// stays at a few MiB per thread.
void copy_from_files(const std::vector<CopyJob>& jobs, int num_threads);

}  // namespace tessera

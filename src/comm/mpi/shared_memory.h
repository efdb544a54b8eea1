// Memory that all ranks of a group on one host can read and write: one segment per rank.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tessera {

class SharedMemory {
 public:
  // Collective over the communicator. Null, on every rank, if the ranks are on several hosts or the host has no such
  // memory left (a container's /dev/shm is often small): messages then do the same, only slower.
  static std::unique_ptr<SharedMemory> create(MPI_Comm communicator);

  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  std::byte* segment(int rank) const { return base_ + rank * segment_bytes(); }
  // 256 KiB per slot with 4 ranks, in the reductions' two turns of one slot per rank: fits in the cache beside the
  // data.
  static constexpr std::int64_t segment_bytes() { return std::int64_t{2} << 20; }

 private:
  SharedMemory(std::byte* base, std::size_t bytes) : base_(base), bytes_(bytes) {}
  std::byte* base_;
  std::size_t bytes_;
};

}  // namespace tessera

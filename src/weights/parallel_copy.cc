#include "weights/parallel_copy.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

namespace tessera {

namespace {

// Large enough that two system calls per piece do not matter, small enough that threads finish together.
constexpr std::int64_t kPieceBytes = 4 << 20;

std::vector<CopyJob> cut(const std::vector<CopyJob>& jobs) {
  std::vector<CopyJob> pieces;
  for (const CopyJob& job : jobs) {
    for (std::int64_t done = 0; done < job.num_bytes; done += kPieceBytes) {
      pieces.push_back(
          {job.file, job.offset_bytes + done, std::min(kPieceBytes, job.num_bytes - done), job.to + done, job.look});
    }
  }
  return pieces;
}

}  // namespace

void copy_from_file(const MappedFile& file, std::int64_t offset_bytes, std::int64_t num_bytes, char* to) {
  file.expect(offset_bytes, num_bytes);
  std::memcpy(to, file.bytes().data() + offset_bytes, static_cast<std::size_t>(num_bytes));
  file.forget(offset_bytes, num_bytes);
}

void copy_from_files(const std::vector<CopyJob>& jobs, int num_threads) {
  const std::vector<CopyJob> pieces = cut(jobs);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < pieces.size(); i = next++) {
      const CopyJob& piece = pieces[i];
      copy_from_file(*piece.file, piece.offset_bytes, piece.num_bytes, piece.to);
      if (piece.look) piece.look(piece.to, piece.num_bytes);
    }
  };
  std::vector<std::jthread> threads;
  const std::size_t num_others = std::min<std::size_t>(std::max(num_threads, 1), pieces.size());
  for (std::size_t i = 1; i < num_others; ++i) threads.emplace_back(work);
  work();
}

}  // namespace tessera

#include "weights/parallel_copy.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

namespace tessera {

namespace {

// Large enough that two system calls per piece do not matter, small enough that threads finish together.
constexpr std::int64_t kPieceBytes = 4 << 20;
// Still in the first cache when it is copied. What has just been written need not be in any.
constexpr std::int64_t kLookBytes = 32 << 10;

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

void copy_from_file(const CopyJob& job) {
  job.file->expect(job.offset_bytes, job.num_bytes);
  const char* from = job.file->bytes().data() + job.offset_bytes;
  const std::int64_t at_once = job.look ? kLookBytes : job.num_bytes;
  for (std::int64_t done = 0; done < job.num_bytes; done += at_once) {
    const std::int64_t num_bytes = std::min(at_once, job.num_bytes - done);
    if (job.look) job.look(from + done, num_bytes);
    std::memcpy(job.to + done, from + done, static_cast<std::size_t>(num_bytes));
  }
  job.file->forget(job.offset_bytes, job.num_bytes);
}

void copy_from_files(const std::vector<CopyJob>& jobs, int num_threads) {
  const std::vector<CopyJob> pieces = cut(jobs);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < pieces.size(); i = next++) copy_from_file(pieces[i]);
  };
  std::vector<std::jthread> threads;
  const std::size_t num_others = std::min<std::size_t>(std::max(num_threads, 1), pieces.size());
  for (std::size_t i = 1; i < num_others; ++i) threads.emplace_back(work);
  work();
}

}  // namespace tessera

#include "weights/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "core/error.h"
#include "core/file.h"
#include "kernels/parallel.h"

namespace tessera {

namespace {

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

// Large enough that two system calls per piece do not matter, small enough that threads finish together.
constexpr std::int64_t kPieceBytes = 4 << 20;
// Still in the first cache when it is copied. What has just been written need not be in any.
constexpr std::int64_t kLookBytes = 32 << 10;

}  // namespace

bool is_plain_name(const std::string& name) {
  return !name.empty() && std::filesystem::path(name).filename() == name && name != "." && name != "..";
}

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  const auto fail = [&](const std::string& reason) {
    throw UsageError(fmt::format("cannot read {}: {}", path.string(), reason));
  };
  // O_NONBLOCK: a pipe without a writer is refused below instead of waited for; it changes nothing for files.
  const Fd descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!descriptor || ::fstat(descriptor.get(), &status) != 0) fail(std::generic_category().message(errno));
  if (S_ISDIR(status.st_mode)) fail("it is a folder");
  if (!S_ISREG(status.st_mode)) fail("not a regular file, so it cannot be mapped");
  num_bytes_ = static_cast<std::size_t>(status.st_size);
  if (num_bytes_ == 0) return;  // cannot be mapped
  void* data = ::mmap(nullptr, num_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, descriptor.get(), 0);
  if (data == MAP_FAILED) fail(std::generic_category().message(errno));
  data_ = static_cast<char*>(data);
}

MappedFile::MappedFile(const std::filesystem::path& path, std::size_t num_bytes)
    : path_(path), num_bytes_(num_bytes), is_file_(false) {
  if (num_bytes == 0) return;
  void* data = ::mmap(nullptr, num_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    throw Error(fmt::format("no memory for {}: {}", path.string(), std::generic_category().message(errno)));
  }
  data_ = static_cast<char*>(data);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, num_bytes_);
}

void MappedFile::expect(std::size_t offset, std::size_t num_bytes) const {
#ifdef MADV_POPULATE_READ
  const std::size_t begin = offset / page_bytes() * page_bytes();
  ::madvise(data_ + begin, offset + num_bytes - begin, MADV_POPULATE_READ);  // affects only speed
#else
  (void)offset;
  (void)num_bytes;
#endif
}

void MappedFile::forget(std::size_t offset, std::size_t num_bytes) const {
  if (!is_file_) return;
  const std::size_t page = page_bytes();
  const std::size_t begin = (offset + page - 1) / page * page, end = (offset + num_bytes) / page * page;
  if (begin < end) ::madvise(data_ + begin, end - begin, MADV_DONTNEED);
}

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

void copy_from_files(const std::vector<CopyJob>& jobs) {
  std::vector<CopyJob> pieces;
  for (const CopyJob& job : jobs) {
    for (std::int64_t done = 0; done < job.num_bytes; done += kPieceBytes) {
      pieces.push_back(
          {job.file, job.offset_bytes + done, std::min(kPieceBytes, job.num_bytes - done), job.to + done, job.look});
    }
  }
  kernels::parallel_parts(0, std::ssize(pieces), 1,
                          [&](std::int64_t i, std::int64_t) { copy_from_file(pieces[static_cast<std::size_t>(i)]); });
}

}  // namespace tessera

#include "checkpoint/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/error.h"

namespace tessera {

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  const auto fail = [&](int error) {
    throw UsageError(fmt::format("cannot read {}: {}", path.string(), std::generic_category().message(error)));
  };
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail(errno);
  struct stat status {};
  int error = ::fstat(descriptor, &status) == 0 ? 0 : errno;
  if (error == 0 && !S_ISREG(status.st_mode)) error = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
  if (error == 0 && status.st_size > 0) {  // an empty map is none
    num_bytes_ = static_cast<std::size_t>(status.st_size);
    void* data = ::mmap(nullptr, num_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, descriptor, 0);
    if (data == MAP_FAILED) {
      error = errno;
    } else {
      data_ = static_cast<char*>(data);
    }
  }
  ::close(descriptor);
  if (error != 0) fail(error);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, num_bytes_);
}

namespace {

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

void MappedFile::expect(std::size_t offset, std::size_t num_bytes) const {
#ifdef MADV_POPULATE_READ
  const std::size_t begin = offset / page_bytes() * page_bytes();
  ::madvise(data_ + begin, offset + num_bytes - begin, MADV_POPULATE_READ);  // only speed depends on it
#else
  (void)offset;
  (void)num_bytes;
#endif
}

void MappedFile::forget(std::size_t offset, std::size_t num_bytes) const {
  const std::size_t page = page_bytes();
  const std::size_t begin = (offset + page - 1) / page * page, end = (offset + num_bytes) / page * page;
  if (begin < end) ::madvise(data_ + begin, end - begin, MADV_DONTNEED);
}

}  // namespace tessera

#include "weights/mapped_file.h"

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
  const auto fail = [&](const std::string& reason) {
    throw UsageError(fmt::format("cannot read {}: {}", path.string(), reason));
  };
  // O_NONBLOCK: a pipe without a writer is refused below instead of waited for; it changes nothing for files.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) fail(std::generic_category().message(errno));
  struct stat status {};
  int error = ::fstat(descriptor, &status) == 0 ? 0 : errno;
  const bool is_file = S_ISREG(status.st_mode);
  if (error == 0 && is_file && status.st_size > 0) {  // an empty file cannot be mapped
    num_bytes_ = static_cast<std::size_t>(status.st_size);
    void* data = ::mmap(nullptr, num_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, descriptor, 0);
    if (data == MAP_FAILED) {
      error = errno;
    } else {
      data_ = static_cast<char*>(data);
    }
  }
  ::close(descriptor);
  if (error != 0) fail(std::generic_category().message(error));
  if (!is_file) fail(S_ISDIR(status.st_mode) ? "it is a folder" : "not a regular file, so it cannot be mapped");
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

namespace {

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

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

}  // namespace tessera

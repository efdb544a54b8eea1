#include "core/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include "core/error.h"

namespace tessera {

AppendFile::AppendFile(std::filesystem::path path, Mode mode) : path_(std::move(path)) {
  std::error_code error;
  if (path_.has_parent_path()) std::filesystem::create_directories(path_.parent_path(), error);
  if (error) fail(error.value());
  const int by_mode = mode == Mode::kNew ? O_EXCL : mode == Mode::kReplace ? O_TRUNC : 0;
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND | by_mode;
  descriptor_ = ::open(path_.c_str(), flags, 0644);
  if (descriptor_ < 0) fail(errno);
}

AppendFile::~AppendFile() {
  ::close(descriptor_);
}

void AppendFile::append(std::string_view bytes) {
  const off_t begin = ::lseek(descriptor_, 0, SEEK_END);
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int error_number = errno;
      if (begin >= 0) std::ignore = ::ftruncate(descriptor_, begin);
      fail(error_number);
    }
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

void AppendFile::fail(int error_number) const {
  throw Error("cannot write " + path_.string() + ": " + std::generic_category().message(error_number));
}

}  // namespace tessera

#include "core/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/process_state.h"
#include "core/text.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kBytesAtOnce = std::size_t{32} << 20;

// A link stays a link: the file it points to is replaced. Anything that is not a file (a folder, a device) must not be
// replaced.
fs::path file_to_replace(const fs::path& path) {
  std::error_code ignored;
  const fs::path target = fs::is_symlink(path, ignored) ? fs::weakly_canonical(path, ignored) : path;
  if (fs::exists(target, ignored) && !fs::is_regular_file(target, ignored)) {
    throw UsageError(fmt::format("cannot write {}: it is {}", path.string(),
                                 fs::is_directory(target, ignored) ? "a folder" : "not a regular file"));
  }
  return target;
}

// A name that no other writer uses: other processes have other ids, and other hosts of a shared disk rarely have the
// same id at the same moment (then O_EXCL refuses).
fs::path beside(const fs::path& target) {
  static std::atomic<int> counter = 0;
  constexpr std::size_t kNameBytes = 100;  // with the rest, far below the 255 that file systems allow
  const std::string name = target.filename().string().substr(0, kNameBytes);
  return target.parent_path() / fmt::format(".{}.part-{}-{}", name, ::getpid(), counter++);
}

}  // namespace

bool is_left_behind(const fs::path& file) {
  constexpr std::string_view kMark = ".part-";
  const std::string name = file.filename().string();
  const std::size_t mark = name.rfind(kMark);
  if (!name.starts_with('.') || mark == std::string::npos) return false;
  const std::string numbers = name.substr(mark + kMark.size());
  const auto process = parse_integer(numbers.substr(0, numbers.find('-')));
  return process && *process > 0 && has_ended(static_cast<pid_t>(*process));
}

OutputFile::OutputFile(const fs::path& target) : target_(file_to_replace(target)), path_(beside(target_)) {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail(errno);
  struct stat old {};
  if (::stat(target_.c_str(), &old) == 0 && ::fchmod(descriptor_, old.st_mode & 07777) != 0) fail(errno);
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!path_.empty()) ::unlink(path_.c_str());
}

void OutputFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kBytesAtOnce));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno);
    num_written_ += static_cast<std::uint64_t>(written);
    bytes.remove_prefix(static_cast<std::size_t>(written));
    if (num_written_ - num_sent_ >= kBytesAtOnce) begin_writeback();
  }
}

// The disk begins at once, not when memory is full of unwritten pages or the file is flushed. A hint: where it cannot
// be followed, nothing is lost.
void OutputFile::begin_writeback() {
  // A page on its way must not be changed; 64 KiB is the largest of any processor.
  constexpr std::uint64_t kPage = std::uint64_t{64} << 10;
  const std::uint64_t until = num_written_ / kPage * kPage;
  ::sync_file_range(descriptor_, static_cast<off_t>(num_sent_), static_cast<off_t>(until - num_sent_),
                    SYNC_FILE_RANGE_WRITE);
  num_sent_ = until;
}

void OutputFile::become_target() {
  while (::fsync(descriptor_) != 0) {
    if (errno != EINTR) fail(errno);
  }
  // Network file systems report a full quota only at this point.
  if (::close(std::exchange(descriptor_, -1)) != 0) fail(errno);
  if (::rename(path_.c_str(), target_.c_str()) != 0) fail(errno);
  path_.clear();
  flush_folder(target_.parent_path());
}

void OutputFile::fail(int error) const {
  throw Error(fmt::format("cannot write {}: {}", target_.string(), std::generic_category().message(error)));
}

}  // namespace tessera

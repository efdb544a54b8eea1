#include "core/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <limits>
#include <system_error>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "core/host.h"
#include "core/text.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

std::string reason(int error_number) {
  return std::generic_category().message(error_number);
}

template <typename Call>
auto retry_when_interrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

constexpr std::size_t kBytesAtOnce = std::size_t{32} << 20;

// A link stays a link: the file it points to is replaced. Anything that is not a file (a folder, a device) must not be
// replaced.
fs::path file_to_replace(const fs::path& path) {
  std::error_code ignored;
  const fs::path target = fs::is_symlink(path, ignored) ? fs::weakly_canonical(path, ignored) : path;
  if (is_there(target) && !is_file(target)) {
    throw UsageError(
        fmt::format("cannot write {}: it is {}", path.string(), is_folder(target) ? "a folder" : "not a regular file"));
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

// False, with errno, if it cannot be read to its end.
bool read_all(const fs::path& path, std::string& content, std::size_t most_bytes = std::string::npos) {
  const Fd descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  // The size is only a hint: files of /proc and pipes report 0, and a log may grow meanwhile.
  struct stat status {};
  if (!descriptor || ::fstat(descriptor.get(), &status) != 0) return false;
  content.resize(std::max<std::size_t>(static_cast<std::size_t>(status.st_size) + 1, 4096));
  std::size_t num_read = 0;
  ssize_t count = 1;
  while (count > 0 && num_read < most_bytes) {
    if (num_read == content.size()) content.resize(content.size() * 2);
    count = retry_when_interrupted(
        [&] { return ::read(descriptor.get(), content.data() + num_read, content.size() - num_read); });
    if (count > 0) num_read += static_cast<std::size_t>(count);
  }
  content.resize(num_read);
  return count >= 0;
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

int Fd::release() {
  return std::exchange(fd_, -1);
}

void Fd::reset() {
  if (fd_ >= 0) close(release());
}

Pipe::Pipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) throw Error(fmt::format("cannot make a pipe: {}", reason(errno)));
  read_end = Fd(fds[0]);
  write_end = Fd(fds[1]);
}

bool write_all(int fd, std::string_view bytes, int patience_ms) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::milliseconds(patience_ms);
  while (!bytes.empty()) {
    const ssize_t count = retry_when_interrupted([&] { return ::write(fd, bytes.data(), bytes.size()); });
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
      continue;
    }
    if (errno != EAGAIN) return false;
    pollfd ready{fd, POLLOUT, 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const int found = ::poll(&ready, 1, patience_ms < 0 ? -1 : static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (found == 0 || (found < 0 && errno != EINTR)) return false;
  }
  return true;
}

// Some file systems cannot flush a folder and return EINVAL or ENOTSUP: their renames are as durable as they get.
void flush_folder(const fs::path& folder) {
  const Fd descriptor(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const bool flushed = descriptor && retry_when_interrupted([&] { return ::fsync(descriptor.get()); }) == 0;
  if (!flushed && errno != EINVAL && errno != ENOTSUP) {
    throw Error(fmt::format("cannot flush the folder {} to disk, though its files are written: {}", folder.string(),
                            reason(errno)));
  }
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::string read_file(const fs::path& path) {
  std::string content;
  if (!read_all(path, content)) {
    throw UsageError(fmt::format("cannot read {}: {}", path.string(), reason(errno)));
  }
  return content;
}

std::string read_if_possible(const fs::path& path, std::size_t most_bytes) {
  std::string content;
  read_all(path, content, most_bytes);
  return content;
}

void write_file_atomically(const fs::path& path, std::string_view content) {
  OutputFile file(path);
  file.write(content);
  file.become_target();
}

void write_gzip_file(const fs::path& path, std::string_view content) {
  constexpr int kGzip = 16;  // added to the window's size: gzip's header instead of zlib's
  z_stream stream{};
  if (content.size() > std::numeric_limits<uInt>::max() ||
      deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw Error(path.string() + ": cannot be compressed");
  }
  std::string packed(deflateBound(&stream, static_cast<uLong>(content.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int status = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) throw Error(path.string() + ": cannot be compressed");
  write_file_atomically(path, packed);
}

std::uint32_t crc32(std::string_view bytes, std::uint32_t so_far) {
  return static_cast<std::uint32_t>(::crc32_z(so_far, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

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
  descriptor_ = Fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!descriptor_) fail(errno);
  struct stat old {};
  if (::stat(target_.c_str(), &old) == 0 && ::fchmod(descriptor_.get(), old.st_mode & 07777) != 0) fail(errno);
}

OutputFile::~OutputFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

void OutputFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kBytesAtOnce);
    if (!write_all(descriptor_.get(), piece)) fail(errno);
    num_written_ += piece.size();
    bytes.remove_prefix(piece.size());
    if (num_written_ - num_sent_ >= kBytesAtOnce) begin_writeback();
  }
}

// The disk begins at once, not when memory is full of unwritten pages or the file is flushed. A hint: where it cannot
// be followed, nothing is lost.
void OutputFile::begin_writeback() {
  // A page on its way must not be changed; 64 KiB is the largest of any processor.
  constexpr std::uint64_t kPage = std::uint64_t{64} << 10;
  const std::uint64_t until = num_written_ / kPage * kPage;
  ::sync_file_range(descriptor_.get(), static_cast<off_t>(num_sent_), static_cast<off_t>(until - num_sent_),
                    SYNC_FILE_RANGE_WRITE);
  num_sent_ = until;
}

void OutputFile::become_target() {
  if (retry_when_interrupted([&] { return ::fsync(descriptor_.get()); }) != 0) fail(errno);
  // Network file systems report a full quota only at this point.
  if (::close(descriptor_.release()) != 0) fail(errno);
  if (::rename(path_.c_str(), target_.c_str()) != 0) fail(errno);
  path_.clear();
  flush_folder(target_.parent_path());
}

void OutputFile::fail(int error) const {
  throw Error(fmt::format("cannot write {}: {}", target_.string(), reason(error)));
}

AppendFile::AppendFile(fs::path path, Mode mode) : path_(std::move(path)) {
  std::error_code error;
  if (path_.has_parent_path()) fs::create_directories(path_.parent_path(), error);
  if (error) fail(error.value());
  const int by_mode = mode == Mode::kNew ? O_EXCL : mode == Mode::kReplace ? O_TRUNC : 0;
  descriptor_ = Fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND | by_mode, 0644));
  if (!descriptor_) fail(errno);
}

void AppendFile::append(std::string_view bytes) {
  const off_t begin = ::lseek(descriptor_.get(), 0, SEEK_END);
  if (write_all(descriptor_.get(), bytes)) return;
  const int error_number = errno;
  if (begin >= 0) std::ignore = ::ftruncate(descriptor_.get(), begin);
  fail(error_number);
}

void AppendFile::fail(int error_number) const {
  throw Error("cannot write " + path_.string() + ": " + reason(error_number));
}

}  // namespace tessera

#include "core/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

std::string reason(int error_number) {
  return std::generic_category().message(error_number);
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }
  // 0, or the errno of a late failure: network file systems report a full quota only here.
  int close() { return ::close(std::exchange(number_, -1)) == 0 ? 0 : errno; }

 private:
  int number_;
};

template <typename Call>
auto retry_when_interrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// The file beside the target that becomes the target; removed if it never does.
class TemporaryFile {
 public:
  explicit TemporaryFile(const fs::path& target) : target_(target), descriptor_(create()) {}
  ~TemporaryFile() {
    if (!renamed_) ::unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void set_mode(mode_t mode) {
    if (::fchmod(descriptor_.number(), mode) != 0) fail(errno);
  }

  void write(std::string_view content) {
    while (!content.empty()) {
      const ssize_t num_written =
          retry_when_interrupted([&] { return ::write(descriptor_.number(), content.data(), content.size()); });
      if (num_written < 0) fail(errno);
      content.remove_prefix(static_cast<std::size_t>(num_written));
    }
    if (retry_when_interrupted([&] { return ::fsync(descriptor_.number()); }) != 0) fail(errno);
    if (const int error = descriptor_.close()) fail(error);
  }

  void become_target() {
    if (::rename(path_.c_str(), target_.c_str()) != 0) fail(errno);
    renamed_ = true;
  }

 private:
  // The process and a counter keep the ranks and threads of one host apart; O_EXCL those of several hosts, and what a
  // crash left behind.
  int create() {
    static std::atomic<unsigned> counter = 0;
    constexpr int kNumAttempts = 100;
    constexpr std::size_t kNameBytes = 100;  // with the rest far below the 255 that file systems allow
    for (int attempt = 0; attempt < kNumAttempts; ++attempt) {
      const std::string name = target_.filename().string().substr(0, kNameBytes);
      path_ = target_.parent_path() / fmt::format(".{}.{}-{}.tmp", name, ::getpid(), counter++);
      const int number = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
      if (number >= 0) return number;
      if (errno != EEXIST) fail(errno);
    }
    fail(EEXIST);
  }

  [[noreturn]] void fail(int error_number) const {
    throw Error(fmt::format("cannot write {}: {}", target_.string(), reason(error_number)));
  }

  fs::path target_, path_;  // before descriptor_, whose initializer needs them
  Descriptor descriptor_;
  bool renamed_ = false;
};

// The mode of the file to be replaced. Anything else (a folder, /dev/null) must not be replaced by a file.
std::optional<mode_t> mode_of_old_file(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  if (!S_ISREG(status.st_mode)) throw Error(fmt::format("cannot write {}: not a regular file", path.string()));
  return status.st_mode & 07777;
}

}  // namespace

// Some file systems cannot flush a folder and return EINVAL or ENOTSUP: their renames are as durable as they get.
void flush_folder(const fs::path& folder) {
  Descriptor descriptor(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const bool flushed =
      descriptor.is_open() && retry_when_interrupted([&] { return ::fsync(descriptor.number()); }) == 0;
  if (!flushed && errno != EINVAL && errno != ENOTSUP) {
    throw Error(fmt::format("cannot flush the folder {} to disk, though its files are written: {}", folder.string(),
                            reason(errno)));
  }
}

std::string read_file(const fs::path& path) {
  const auto fail = [&](int error_number) {
    throw UsageError(fmt::format("cannot read {}: {}", path.string(), reason(error_number)));
  };
  Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor.is_open()) fail(errno);

  // The size is only a hint: files of /proc and pipes report 0, and a log may grow meanwhile.
  struct stat status {};
  if (::fstat(descriptor.number(), &status) != 0) fail(errno);
  std::string content(static_cast<std::size_t>(status.st_size) + 1, '\0');
  std::size_t num_read = 0;
  while (true) {
    if (num_read == content.size()) content.resize(content.size() * 2 + 4096);
    const ssize_t count = retry_when_interrupted(
        [&] { return ::read(descriptor.number(), content.data() + num_read, content.size() - num_read); });
    if (count < 0) fail(errno);
    if (count == 0) break;
    num_read += static_cast<std::size_t>(count);
  }
  content.resize(num_read);
  return content;
}

void write_file_atomically(const fs::path& path, std::string_view content) {
  // A link stays a link: the file that it names is replaced.
  std::error_code no_link;
  const fs::path target = fs::is_symlink(path, no_link) ? fs::weakly_canonical(path, no_link) : path;
  const std::optional<mode_t> old_mode = mode_of_old_file(target);
  TemporaryFile file(target);
  if (old_mode) file.set_mode(*old_mode);
  file.write(content);
  file.become_target();
  flush_folder(target.parent_path());
}

}  // namespace tessera

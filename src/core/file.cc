#include "core/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/error.h"
#include "core/output_file.h"

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

 private:
  int number_;
};

template <typename Call>
auto retry_when_interrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
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
  OutputFile file(path);
  file.write(content);
  file.become_target();
}

}  // namespace tessera

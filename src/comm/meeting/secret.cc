#include "comm/meeting/secret.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "core/error.h"
#include "core/file_descriptor.h"
#include "core/host.h"
#include "core/text.h"
#include "core/user_folders.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMakeOne = "remove it, and the next run makes a new one";

UsageError file_mistake(const fs::path& path, const std::string& mistake) {
  return UsageError(fmt::format("the secret file {}: {}", path.string(), mistake));
}

// Nothing if there is no such file.
std::optional<Key> read_secret(const fs::path& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  if (!file && errno == ELOOP) throw file_mistake(path, "it is a link; name the file itself");
  if (!file) throw file_mistake(path, std::strerror(errno));
  struct stat status {};
  if (fstat(file.get(), &status) != 0) throw file_mistake(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) throw file_mistake(path, "it is not a file");
  if (status.st_uid != geteuid()) throw file_mistake(path, "it belongs to another user");
  if ((status.st_mode & 077) != 0) {
    throw file_mistake(path, fmt::format("others may read or change it (mode {:04o}): it is no longer secret; {}",
                                         status.st_mode & 07777, kMakeOne));
  }
  std::string text(256, '\0');
  const ssize_t count = read(file.get(), text.data(), text.size());
  if (count < 0) throw file_mistake(path, std::strerror(errno));
  text.resize(static_cast<std::size_t>(count));
  const auto key = key_from_hex(trim(text));
  wipe(text.data(), text.size());
  if (!key) throw file_mistake(path, fmt::format("it does not hold 64 hexadecimal digits; {}", kMakeOne));
  return key;
}

// Writes a whole file beside the target, then gives it the name, which fails if another process was first. So readers
// see a whole secret or none, on NFS too.
void make_secret(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path.parent_path(), error)) {
    fs::create_directories(path.parent_path(), error);
    if (!error) fs::permissions(path.parent_path(), fs::perms::owner_all, error);
  }
  const fs::path draft = fmt::format("{}.{}.{}", path.string(), host_name(), getpid());
  unlink(draft.c_str());
  const Fd file(open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  std::string text = to_hex(random_key()) + "\n";
  const bool is_written = file && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                          fsync(file.get()) == 0;
  wipe(text.data(), text.size());
  int reason = is_written ? 0 : errno;
  if (is_written && link(draft.c_str(), path.c_str()) != 0 && errno != EEXIST) reason = errno;
  unlink(draft.c_str());
  if (reason != 0) {
    throw UsageError(fmt::format(
        "cannot make the secret file {}: {}. Name another by {}, or give all ranks the same {} (64 hexadecimal digits)",
        path.string(), std::strerror(reason), kSecretFileVariable, kSecretVariable));
  }
}

}  // namespace

std::optional<Key> take_secret_of_environment() {
  static std::mutex mutex;
  static std::optional<Key> taken;
  const std::lock_guard lock(mutex);
  char* const text = std::getenv(kSecretVariable);
  if (text == nullptr || *text == '\0') return taken;
  const std::size_t size = std::strlen(text);
  taken = key_from_hex({text, size});
  wipe(text, size);
  unsetenv(kSecretVariable);
  if (!taken) throw UsageError(fmt::format("{} in the environment is not 64 hexadecimal digits", kSecretVariable));
  return taken;
}

fs::path secret_file(const Environment& environment) {
  if (const auto named = environment.find(kSecretFileVariable)) return *named;
  const auto folder = config_folder(environment);
  if (!folder) {
    throw UsageError(fmt::format(
        "HOME is not set, so there is no place for the secret that the ranks share: name a file by {}, or give all "
        "ranks the same {} (64 hexadecimal digits)",
        kSecretFileVariable, kSecretVariable));
  }
  return *folder / "secret";
}

Key secret_of_file(const Environment& environment) {
  const fs::path path = secret_file(environment);
  if (const auto secret = read_secret(path)) return *secret;
  make_secret(path);
  const auto secret = read_secret(path);
  if (!secret) throw file_mistake(path, "it was removed just after it was made");
  return *secret;
}

Key job_key(const Key& secret, const std::string& job_id) {
  return keyed_hash(secret, {"tessera job", job_id});
}

}  // namespace tessera

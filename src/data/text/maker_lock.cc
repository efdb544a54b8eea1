#include "data/text/maker_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "core/host.h"
#include "core/log.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr double kSilentSeconds = 2;  // ranks of one run wait for each other; that is not worth a message

// Its last holder removes a lock's file. Whoever opened it before that has locked a file that nobody else finds.
bool is_the_file_at(const fs::path& path, const Fd& descriptor) {
  struct stat opened, named;
  return ::fstat(descriptor.get(), &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

}  // namespace

std::optional<MakerLock> MakerLock::try_take(const fs::path& cache_file) {
  const fs::path file = cache_file.parent_path() / fmt::format(".{}.lock", cache_file.stem().string());
  while (true) {
    Fd lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!lock) return MakerLock(file, std::move(lock), false);
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK) return std::nullopt;
      return MakerLock(file, std::move(lock), false);
    }
    if (is_the_file_at(file, lock)) return MakerLock(file, std::move(lock), true);
  }
}

MakerLock MakerLock::take(const fs::path& cache_file) {
  const double begin = steady_seconds();
  for (bool is_said = false; true;) {
    if (auto lock = try_take(cache_file)) return std::move(*lock);
    if (!is_said && steady_seconds() - begin > kSilentSeconds) {
      // The other process may be slow or stopped: tell the user what we wait for.
      log_info("waiting for another process to make {}", cache_file.string());
      is_said = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(is_said ? 100 : 10));
  }
}

MakerLock::~MakerLock() {
  if (lock_) ::unlink(file_.c_str());  // waiting processes find the cache file; later ones may make a new lock
}

}  // namespace tessera

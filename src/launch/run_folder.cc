#include "launch/run_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "core/error.h"
#include "core/host.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// Holds the host's name, written once it is locked: TMPDIR may be shared by hosts whose locks do not see each other.
constexpr const char* kLock = "/lock";

}  // namespace

RunFolder::RunFolder(const Environment& environment) {
  std::string base = environment.find("TMPDIR").value_or("/tmp");
  if (base.size() > 70) base = "/tmp";  // the socket's path must fit in its address
  path_ = base + "/" + kPrefix + "XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) throw Error("cannot make a folder in " + base + ": " + std::strerror(errno));
  lock_ = Fd(open((path_ + kLock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const std::string host = host_name();
  // Without the lock (a file system that has none) nobody ever takes the folder for abandoned.
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) (void)!write(lock_.get(), host.data(), host.size());
}

RunFolder::~RunFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

bool RunFolder::is_abandoned(const fs::path& folder) {
  const Fd lock(open((folder.string() + kLock).c_str(), O_RDWR | O_CLOEXEC));
  if (!lock) return false;
  std::array<char, 256> host{};
  const ssize_t size = read(lock.get(), host.data(), host.size());
  if (size <= 0 || std::string_view(host.data(), static_cast<std::size_t>(size)) != host_name()) return false;
  return flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
}

}  // namespace tessera

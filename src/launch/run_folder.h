// A launcher's private folder: its socket, the ranks' orders and last words. Removed when the launcher exits; if it was
// killed, by a minder, or by the next launcher (leftovers.h), which sees by a lock that nobody uses it any more.
#pragma once

#include <filesystem>
#include <string>

#include "core/environment.h"
#include "core/file_descriptor.h"

namespace tessera {

class RunFolder {
 public:
  // In TMPDIR, else in /tmp. Throws Error.
  explicit RunFolder(const Environment& environment);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& path() const { return path_; }

  // Whether it is the folder of a launcher on this host that is gone.
  static bool is_abandoned(const std::filesystem::path& folder);
  static constexpr const char* kPrefix = "tessera-launch-";

 private:
  std::string path_;
  Fd lock_;  // the kernel frees it with this process, however that ends
};

}  // namespace tessera

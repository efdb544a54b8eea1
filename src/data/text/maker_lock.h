// Held by the process that makes a file of the cache, while others wait for the file or make another one.
//
// The lock is a file beside it. A process that dies holds no lock. Where the file system has no locks, everyone gets
// one: work may be done twice, and the last rename wins, with the same bytes. Threads of one process exclude each other
// as processes do.
#pragma once

#include <filesystem>
#include <optional>

#include "core/file.h"

namespace tessera {

class MakerLock {
 public:
  // Nothing if someone else holds it.
  static std::optional<MakerLock> try_take(const std::filesystem::path& cache_file);
  // Waits; after two seconds a line in the log says for what.
  static MakerLock take(const std::filesystem::path& cache_file);

  MakerLock(MakerLock&&) = default;
  MakerLock& operator=(MakerLock&&) = delete;
  ~MakerLock();

  // Whether others are really kept out.
  bool is_exclusive() const { return is_exclusive_; }

 private:
  MakerLock(std::filesystem::path file, Fd lock, bool is_exclusive)
      : file_(std::move(file)), lock_(std::move(lock)), is_exclusive_(is_exclusive) {}

  std::filesystem::path file_;
  Fd lock_;
  bool is_exclusive_;
};

}  // namespace tessera

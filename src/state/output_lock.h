// One run at a time writes into an output folder.
//
// A file in the folder says who does, with a number that grows every few seconds: locks of the file system are not to
// be relied on with Lustre and NFS. A lock is dead if its process is gone from this host, if it is of an earlier start
// of this Slurm job, or if its number stands still. Not collective.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>

#include "core/environment.h"

namespace tessera {

class OutputLock {
 public:
  static constexpr std::chrono::milliseconds kPeriod{10'000};

  // Throws UsageError naming host and process of the run that uses the folder. May take a few periods, if a run on
  // another host left a lock.
  OutputLock(const std::filesystem::path& folder, const Environment& environment,
             std::chrono::milliseconds period = kPeriod);
  ~OutputLock();
  OutputLock(const OutputLock&) = delete;
  OutputLock& operator=(const OutputLock&) = delete;

  // Throws UsageError if another run has taken the folder, since this one seemed dead.
  void check() const;

  static std::filesystem::path file_in(const std::filesystem::path& folder);

 private:
  void write(std::int64_t beat) const;
  void keep_beating(const std::stop_token& stop);

  std::filesystem::path file_;
  std::string id_, job_;
  std::chrono::milliseconds period_;
  std::jthread heart_;
};

}  // namespace tessera

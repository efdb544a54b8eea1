// What killed runs left on this host, removed when the next one starts.
//
//   TMPDIR/tessera-launch-*              a launcher's folder
//   TMPDIR/ompi.HOST.USER/pid.N          the session of an mpirun
//   /dev/shm/vader_segment.HOST.USER.*   memory that MPI's ranks share
//   /dev/shm/tessera-N-*                 the same of our own, for the moment between its making and its mapping
//
// Only this user's, and only if nobody uses it: the launcher's lock is free, there is no process N, no process has the
// memory mapped.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>

namespace tessera {

struct LeftoverPlaces {
  std::filesystem::path temporary = "/tmp";  // TMPDIR
  std::filesystem::path shared_memory = "/dev/shm";
  std::filesystem::path processes = "/proc";
  // Younger sessions and memory stay: a run that is starting may not have mapped what it has just made.
  std::chrono::seconds least_age = std::chrono::minutes(1);
};

// Never throws: a run does not depend on it.
void remove_leftovers(const LeftoverPlaces& places) noexcept;
// What our own mpirun left when it was killed.
void remove_session(pid_t mpirun, const std::filesystem::path& temporary) noexcept;

}  // namespace tessera

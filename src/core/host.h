// This host and its processes: name, time, what the kernel says.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// Its name, as messages and rosters show it.
std::string host_name();

// The folder of libtessera.so, or of the program it is linked into: what it loads at run time lies beside it.
std::filesystem::path own_folder();

// Seconds, for durations: never jumps back.
inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
// Seconds of CPU time that the calling thread has used.
inline double thread_cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}
// Seconds since 1970, the form that files use.
inline double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Milliseconds since 1970, the form that launchers and failure files use.
inline std::int64_t now_ms() {
  return static_cast<std::int64_t>(1000 * wall_seconds());
}

// Until `time`; false: `stop` was requested before.
bool sleep_until(const std::stop_token& stop, std::chrono::steady_clock::time_point time);

// The state of a process: the letter of its `stat` file. 'T' is stopped, 'Z' has ended and waits for its parent to ask
// how; 0 if there is no such process.
char process_state(pid_t pid);
bool has_ended(pid_t pid);

// At most 15 letters of it, as the kernel keeps them; empty if there is no such process.
std::string process_name(pid_t pid);

// Empty if there is no such process, or the kernel does not tell.
std::vector<pid_t> children_of(pid_t pid);

// A line "inactive_file 4096" of the kernel's statistics.
std::optional<std::int64_t> named_number(std::string_view text, std::string_view name);

// The folders whose limits apply to this process, its own first, then those above it. `controller`: of cgroup version 1
// ("memory"); "": version 2. `root` replaces / in tests.
std::vector<std::filesystem::path> cgroup_folders(const std::filesystem::path& root, std::string_view controller);

// /proc/self/cgroup: the folder of this process below the cgroup file system's root.
std::optional<std::string> parse_cgroup_path(std::string_view text, std::string_view controller);

// The content of memory.max or memory.limit_in_bytes. None: no limit ("max", or version 1's huge number).
std::optional<std::int64_t> parse_cgroup_limit(std::string_view text);

// From now on freed memory stays with the process instead of going back to the system. A training step on a CPU
// allocates and frees the same hundreds of megabytes each time; by default, every step fetches every page of them from
// the system again, zeroed. Does nothing where the C library has no such option.
void keep_freed_memory();

}  // namespace tessera

// What the kernel says about a process.
#pragma once

#include <sys/types.h>

#include <filesystem>

namespace tessera {

// The letter of its `stat` file: 'T' is stopped, 'Z' has ended and waits for its parent to ask how; 0 if there is no
// such process. `process`: its folder in /proc.
char process_state(const std::filesystem::path& process);
char process_state(pid_t pid);

}  // namespace tessera

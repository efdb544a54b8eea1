// What the kernel says about a process.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace tessera {

// The letter of its `stat` file: 'T' is stopped, 'Z' has ended and waits for its parent to ask how; 0 if there is no
// such process. `process`: its folder in /proc.
char process_state(const std::filesystem::path& process);
char process_state(pid_t pid);
bool has_ended(pid_t pid);

// At most 15 letters of it, as the kernel keeps them; empty if there is no such process.
std::string process_name(pid_t pid);

// Empty if there is no such process, or the kernel does not tell.
std::vector<pid_t> children_of(pid_t pid);

}  // namespace tessera

// Runs a command and reads what it prints. (no torch)
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace tessera {

struct CommandOutput {
  int status = 0;  // 128 + signal; 127: there is no such program
  std::string out, err;
};

// A command that takes longer than `limit` is killed: Slurm's clients retry for minutes where a daemon is down. Throws
// Error for that, and if no process can be started.
CommandOutput command_output(const std::vector<std::string>& words, std::chrono::seconds limit);

// Its standard output. Throws Error with what it said where its status is not 0.
std::string successful_output(const std::vector<std::string>& words, std::chrono::seconds limit);

}  // namespace tessera

// Runs the real program, alone or under mpirun, and returns what it printed and how it ended.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace tessera {

struct Ended {
  int status = -1;     // the exit status; 128 + signal
  std::string output;  // both streams together
  std::chrono::duration<double> seconds{};
};

// A shell runs `command`.
Ended run_shell(const std::string& command);

// Runs the program under test with the words of `arguments`, under mpirun with this many ranks; 0: without mpirun.
// `mpirun_options` go before the program.
Ended run_tessera(const std::string& arguments, int num_ranks = 0, const std::string& mpirun_options = "");

// TESSERA_BINARY from the environment, else the program that was built with this test.
std::string binary();

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace tessera

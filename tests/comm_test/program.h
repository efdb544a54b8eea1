// Runs the real program, alone or under mpirun, and gives back what it printed and how it ended.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace tessera {

struct Ended {
  int status = -1;     // the exit status; 128 + signal
  std::string output;  // of both streams, together
  std::chrono::duration<double> seconds{};
};

// `command` is given to a shell.
Ended run_shell(const std::string& command);

// The program under test with the words of `arguments`, under mpirun with so many ranks; 0: without mpirun.
// `mpirun_options` go before the program.
Ended run_tessera(const std::string& arguments, int num_ranks = 0, const std::string& mpirun_options = "");

// TESSERA_BINARY of the environment, or the one that was built with this test.
std::string binary();

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace tessera

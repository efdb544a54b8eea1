// The line of a script that starts its training: under which launcher, how many processes, which program with which
// arguments. (no torch)
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/shell_variables.h"
#include "experiment/import/sbatch_lines.h"

namespace tessera {

// A command without what stands before it: NAME=value, srun, mpirun, time, env, a container, bash -c.
struct BareCommand {
  std::string wrapper;                                        // srun, mpirun or none
  std::vector<SbatchOption> wrapper_options;                  // of srun; mpirun: "ntasks"
  std::vector<std::pair<std::string, ShellValue>> variables;  // for this command alone
  std::string container;                                      // the program that would run it in one
  std::string script;                                         // of `bash -c 'script'`; words is then empty
  ShellValues words;

  std::string head() const { return program_of(words); }
};

BareCommand without_wrappers(const ShellValues& words);

struct LaunchLine {
  std::string place;                          // "train.sbatch:31"
  std::string launcher;                       // python, torchrun, deepspeed or accelerate
  std::map<std::string, ShellValue> options;  // the launcher's, with underscores: nproc_per_node
  std::string program;                        // train.py, or a module
  ShellValues arguments;                      // the program's
  BareCommand command;                        // wrapper and variables
  ShellVariables variables;                   // as they are when it starts

  std::string shown() const;  // "srun torchrun train.py"
  // An option as a whole number; nothing if it is not given or not known.
  std::optional<int> count(const std::string& option) const;
};

// Nothing if the command starts no Python program.
std::optional<LaunchLine> read_launch_line(const BareCommand& command);

std::string option_name(const std::string& word);  // "--nproc-per-node=4" -> "nproc_per_node"

}  // namespace tessera

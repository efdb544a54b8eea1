// Reads a job script from top to bottom, with the files that it sources, as far as that is possible without running
// it. (no torch)
//
// Conditions are not decided: what stands in an if or a loop is read as if it ran, except that it changes no variable
// that already has a value.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "core/environment.h"
#include "experiment/import/accelerate_config.h"
#include "experiment/import/launch_line.h"
#include "experiment/values.h"

namespace tessera {

struct ScriptFacts {
  std::filesystem::path path;  // of the script; relative paths in it are taken from its folder
  std::string name;            // what messages call it: its file name
  Allocation allocation;
  std::vector<LaunchLine> launches;  // trainings; if there are none, whatever Python programs it starts
  LaunchLine launch;                 // the chosen one
  AccelerateConfig accelerate;       // of its launcher
  Values gate;                       // what a run of nccl-tests becomes
  std::set<std::string> referenced;  // names of variables that the script itself uses
  Remarks remarks;
};

// Throws UsageError for a file that is no text, quotes that are not closed, and a sourced file that is not there. Of
// the environment, only HOME and USER are used.
ScriptFacts read_script(const std::filesystem::path& script, const Environment& environment);

// Where a file of the script lies: in the folder that it works in ($PWD), or beside it. Empty: there is none.
std::filesystem::path find_file_of_script(const std::string& text, const ShellVariables& variables,
                                          const ScriptFacts& script);

}  // namespace tessera

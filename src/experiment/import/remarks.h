// What becomes of each thing in a script: a remark for the user who moves it to Tessera. (no torch)
#pragma once

#include <string>
#include <vector>

#include "core/shell_variables.h"

namespace tessera {

struct Remark {
  enum class Kind {
    kTaken,      // is in the experiment
    kSite,       // a fact of the cluster: belongs to the site file
    kNotNeeded,  // Tessera does without it, or does it itself
    kComputed,   // only a shell can compute the value
    kLeftOut,    // not understood, or not in Tessera: the run may differ
  };
  Kind kind;
  std::string place;      // "train.sbatch:12"; empty: the script as a whole
  std::string what, why;  // "--partition=gpu", "..."
};

using Remarks = std::vector<Remark>;

// Remarks by kind, each kind under its title.
std::string remarks_text(const Remarks& remarks);

struct CommandFate {
  enum class Kind { kRemark, kSilent, kGate };  // kSilent: a shell's own, such as echo
  Kind kind;
  Remark::Kind remark = Remark::Kind::kNotNeeded;
  std::string what, why;  // `what` has no values of the script: they may be secrets
};

// Of a command that is no training.
CommandFate fate_of(const ShellValues& words);

std::string program_of(const ShellValues& words);  // the first word without its folder

// Whether the file that is sourced only sets up Python, a shell or modules.
bool is_activation(const std::string& path);

// Whether a Python program's name says that it is no training: analyze_memory.py, download_data.py.
bool is_helper_program(const std::string& program);

}  // namespace tessera

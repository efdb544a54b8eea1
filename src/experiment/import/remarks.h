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

struct Remarks {
  std::vector<Remark> all;
  std::string place;  // where that stands which is being read

  void add(Remark::Kind kind, const std::string& what, const std::string& why) {
    all.push_back({kind, place, what, why});
  }
};

// Remarks by kind, each kind under its title.
std::string remarks_text(const std::vector<Remark>& remarks);

// What becomes of a command that is no training; nothing is said of a shell's own, such as echo, and nothing twice.
// Values of the script do not appear: they may be secrets.
void remark_on_command(const ShellValues& words, Remarks& remarks);

bool is_bandwidth_test(const ShellValues& words);  // of nccl-tests

std::string program_of(const ShellValues& words);  // the first word without its folder

// Whether the file that is sourced only sets up Python, a shell or modules.
bool is_activation(const std::string& path);

// Whether a Python program's name says that it is no training: analyze_memory.py, download_data.py.
bool is_helper_program(const std::string& program);

}  // namespace tessera

// Commands that job scripts have besides the training, and what becomes of each. (no torch)
#pragma once

#include <string>

#include "experiment/import/launch_line.h"
#include "experiment/import/remark.h"

namespace tessera {

struct CommandFate {
  enum class Kind { kRemark, kSilent, kGate, kMonitor };  // kSilent: a shell's own, such as echo
  Kind kind;
  Remark::Kind remark = Remark::Kind::kNotNeeded;
  std::string what, why;  // `what` has no values of the script: they may be secrets
};

CommandFate fate_of(const BareCommand& command);

// Whether the file that is sourced only sets up Python, a shell or modules.
bool is_activation(const std::string& path);

// Whether a Python program's name says that it is no training: analyze_memory.py, download_data.py.
bool is_helper_program(const std::string& program);

}  // namespace tessera

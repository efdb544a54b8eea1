// What a command prints for its user: all of it, or an error. A command must not exit with 0 when the disk is full.
#pragma once

#include <string_view>

#include "core/error.h"

namespace tessera {

class OutputError : public Error {
 public:
  using Error::Error;
};

// Writes `text` to standard output and flushes it. Throws OutputError "cannot write to standard output: No space left
// on device".
void print_out(std::string_view text);

}  // namespace tessera

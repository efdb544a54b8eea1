// Standard input, output and error: what a command prints, and that they are open. A command prints all of its output
// or fails: it must not exit with 0 when the disk is full.
#pragma once

#include <string>
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

// Takes the terminal's line back to its beginning, empty.
inline constexpr std::string_view kClearLine = "\r\x1b[2K";

// For standard error: coloured where that is a terminal, unless NO_COLOR is set or TERM is dumb.
enum class Colour { kRed = 31, kGreen = 32, kYellow = 33 };
std::string coloured(std::string_view text, Colour colour);

// Writes `text` to standard error, where the log's lines go, too. `standing` is what then stands on the terminal's last
// line, a bar of progress: later log lines clear it and draw it again below themselves. Empty: nothing stands there.
void write_progress(std::string_view text, std::string_view standing);

// Opens /dev/null in place of each of descriptors 0 to 2 that is closed (`2>&-`). Must come first in main(): otherwise
// the next file or socket to be opened takes the number and receives what is meant for the terminal.
void open_missing_standard_streams();

// From now on a write to a pipe whose reader is gone (`| head -3`, a closed ssh) fails with EPIPE instead of ending the
// process: for runs, which go on without it. Other commands end silently, as users of pipes expect. Programs that this
// one starts have the usual behaviour.
void survive_closed_pipes();

}  // namespace tessera

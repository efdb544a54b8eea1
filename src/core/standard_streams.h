// Makes sure that standard input, output and error are open, as every program expects, and that a run outlives those
// who read them.
#pragma once

namespace tessera {

// Opens /dev/null in place of each of descriptors 0 to 2 that is closed (`2>&-`). Must come first in main(): otherwise
// the next file or socket to be opened takes the number and receives what is meant for the terminal.
void open_missing_standard_streams();

// From now on a write to a pipe whose reader is gone (`| head -3`, a closed ssh) fails with EPIPE instead of ending the
// process: for runs, which go on without it. Other commands end silently, as users of pipes expect. Programs that this
// one starts have the usual behaviour.
void survive_closed_pipes();

}  // namespace tessera

// Makes sure that standard input, output and error are open, as every program expects.
#pragma once

namespace tessera {

// Opens /dev/null in place of each of descriptors 0 to 2 that is closed (`2>&-`). Must come first in main(): otherwise
// the next file or socket to be opened takes the number and receives what is meant for the terminal.
void open_missing_standard_streams();

}  // namespace tessera

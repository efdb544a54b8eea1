// What the C library does with memory that a program frees.
#pragma once

namespace tessera {

// From now on freed memory stays with the process instead of going back to the system. A training step on a CPU
// allocates and frees the same hundreds of megabytes each time; by default, every step fetches every page of them from
// the system again, zeroed. Does nothing where the C library has no such option.
void keep_freed_memory();

}  // namespace tessera

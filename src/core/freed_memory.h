// What the C library does with memory that a program frees.
#pragma once

namespace tessera {

// From now on it stays with the process instead of going back to the system. A training step on a CPU allocates and
// frees the same hundreds of megabytes each time; as given, every page of them is fetched from the system, zeroed,
// again in every step. Nothing happens where the C library cannot do so.
void keep_freed_memory();

}  // namespace tessera

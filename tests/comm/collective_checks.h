// What every backend must do, checked on any world: threads, MPI, and MPI with CUDA tensors run the same checks.
#pragma once

#include "tessera/world.h"

namespace tessera {

void check_reductions(World& world);  // every type, operation and size; the order of sums
void check_moves(World& world);       // all-gather, broadcast, all-to-all, send and recv
void check_same_bits_by_every_way(World& world);
void check_many_in_flight(World& world);     // several groups at once, in another order on each rank
void check_threads_on_groups(World& world);  // one thread per group
void check_queue_of_many(World& world);      // thousands of operations in flight
void check_refusals(World& world);           // strided, unknown type, sizes that do not divide
void check_layout(World& world, int ranks_per_node);
void check_recorded(World& world);

void check_everything(World& world, int ranks_per_node);

}  // namespace tessera

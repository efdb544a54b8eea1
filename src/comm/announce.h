// What ranks print when they come up; scripts look for these lines (SPEC: 'Running on N nodes x G GPUs = W total
// GPUs').
#pragma once

#include <string>

#include "tessera/world.h"

namespace tessera {

struct Address {
  std::string host;
  int port = 0;  // 0: there is no other rank
};

// Before the ranks meet: printed by every rank if all are to be reported.
void announce_start(const WorldOptions& options, int rank, const Address& head);
// After they have met: rank 0 prints the size of the run and its devices; every rank prints its own line if all are to
// be reported.
void announce_world(const WorldOptions& options, const World& world, const Address& head);

}  // namespace tessera

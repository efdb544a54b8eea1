// What ranks print when they come up; scripts look for these lines (SPEC: 'Running on N nodes x G GPUs = W total
// GPUs').
#pragma once

#include <string>

#include "tessera/world.h"

namespace tessera {

struct Address {
  std::string host;
  int port = 0;  // 0: nobody else comes
};

// Before the ranks meet: every rank, where all are to be told of.
void announce_start(const WorldOptions& options, int rank, const Address& head);
// When they have met: rank 0 the size of the run and its devices; every rank itself, where all are to be told of.
void announce_world(const WorldOptions& options, const World& world, const Address& head);

}  // namespace tessera

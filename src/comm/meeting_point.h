// Where the ranks of a run meet without asking anybody, and by which key they know each other.
#pragma once

#include <chrono>
#include <memory>

#include "comm/announce.h"
#include "comm/meeting/keyed_hash.h"
#include "comm/meeting/meeting_place.h"
#include "comm/rank_env.h"

namespace tessera {

struct MeetingPoint {
  Address address;
  Key key{};  // of the job
};

// Opens `place` on rank 0 if no launcher holds it. `by_mpi`: MPI runs and carries address and key, unless a launcher
// does. Otherwise they come from the environment and the user's file. Throws Error if either is missing.
MeetingPoint find_meeting_point(const RankEnv& self, bool by_mpi, std::chrono::milliseconds timeout,
                                const Environment& environment, std::unique_ptr<MeetingPlace>& place);

}  // namespace tessera

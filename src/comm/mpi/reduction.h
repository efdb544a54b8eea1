// The one step that all reductions of the MPI backend have in common.
//
// Rank k needs the k-th part of every rank and adds them in the fixed order. Between hosts the parts travel as
// messages. Ranks of one host put them into shared memory and only signal that they are there (by an empty message,
// whose tag still tells wrong sizes apart): one copy per byte instead of MPI's two, and no handshake for a large
// message.
#pragma once

#include "comm/host_backend.h"
#include "comm/mpi/flow.h"
#include "comm/mpi/parts.h"
#include "comm/mpi/task.h"
#include "comm/ordered_reduce.h"

namespace tessera {

// Reduces this rank's part of every rank's input into `output` (which may be that part of its own input), chunk by
// chunk: while one chunk is added, the next is on its way. With `share_into`, a whole buffer whose own part is
// `output`, each chunk is sent to all ranks as soon as it is added: that makes it an all-reduce.
MpiTask reduce_own_part(MpiFlow& flow, const HostOperation& op, const ReduceOrder& order, Parts parts,
                        std::byte* output, std::byte* share_into = nullptr);

}  // namespace tessera

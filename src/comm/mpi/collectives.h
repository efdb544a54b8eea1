// The collectives of the MPI backend, built on point-to-point messages. MPI's own reductions are not used: the order in
// which they add depends on the size and on where the ranks are, and ours must not (ordered_reduce.h).
//
// In a reduction, rank k gets the k-th part of every rank and adds them in the fixed order. Each rank sends and
// receives (P-1)/P of the data, the least possible; all-reduce adds an all-gather of the parts.
#pragma once

#include "comm/host_backend.h"
#include "comm/mpi/channel.h"
#include "comm/ordered_reduce.h"

namespace tessera {

// Everything passed by reference must outlive the task.
MpiTask carry_out(MpiChannel& channel, const HostOperation& operation, const ReduceOrder& order);

}  // namespace tessera

// Two ranks on one GPU: allowed only if it was asked for. (NCCL refuses it; through MPI it works, at half the memory
// and speed each.)
#pragma once

#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

namespace tessera {

// Every rank that computes on a GPU tells the others which one, by the store, and reads those of its own host. GPUs are
// compared by what they are, not by their index: with one visible GPU per rank (srun --gpus-per-task 1) all are cuda:0.
// Throws UsageError, on every rank of a host, if two of its ranks have the same. `hosts`: by rank.
void refuse_shared_gpus(c10d::Store& store, int rank, const std::vector<std::string>& hosts, const std::string& gpu);

}  // namespace tessera

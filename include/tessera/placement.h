// The strategies by name: where parameters, gradients and optimizer state live between uses.
//
//   name                 parameters                             gradients     optimizer state   split over
//   single               whole                                  whole         whole             - (one rank)
//   ddp zero0 no_shard   whole                                  whole         whole             -
//   zero1                whole                                  whole         split             all ranks
//   zero2                whole                                  split         split             all ranks
//   shard_grad_op        split; whole from forward to backward  split         split             all ranks
//   zero3 full_shard     split; whole while a unit computes     split         split             all ranks
//   hybrid_shard         as full_shard                          split         split             the ranks of a node
//
// All give the same losses: with the same number of ranks and micro-steps bit for bit on CPUs. Every one works on one
// rank, where nothing is split.
#pragma once

#include <string>
#include <vector>

namespace tessera {

// All of them, in the order of the engine's table.
std::vector<std::string> strategy_names();

}  // namespace tessera

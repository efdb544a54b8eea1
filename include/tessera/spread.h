// How a model is spread over the ranks: the strategy by name, and what goes with it.
//
//   name                 parameters                             gradients   optimizer state   split over
//   single               whole                                  whole       whole             - (one rank)
//   ddp zero0 no_shard   whole                                  whole       whole             -
//   zero1                whole                                  whole       split             all ranks
//   zero2                whole                                  split       split             all ranks
//   shard_grad_op        split; whole from forward to backward  split       split             all ranks
//   zero3 full_shard     split; whole while a unit computes     split       split             all ranks
//   zero3_hpz            as zero3; backward gathers from a      split       split             all ranks; second copy:
//                        second copy that each node keeps                                     the ranks of a node
//   hybrid_shard         as full_shard                          split       split             the ranks of a node
//   hybrid_shard_zero2   as shard_grad_op                       split       split             the ranks of a node
//
// All give the same losses: bit for bit on CPUs with the same number of ranks and micro-steps. Each also works on one
// rank, where nothing is split.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

// When backward starts to gather the next unit: not ahead, before a unit computes, or after it.
enum class BackwardPrefetch { kNone, kPre, kPost };

// src/parallel/placement.cc declares each option's name and help for users.
struct SpreadOptions {
  std::string strategy = "auto";    // auto: single on one rank, ddp on several
  bool offload_optimizer = false;   // master values, moments and reduced gradients in host memory, updated there
  bool offload_parameters = false;  // split parameters in host memory between uses
  bool pin_memory = true;           // page-locked host memory for offloaded state: copies overlap with computation
  // With offload_optimizer on a GPU: an update runs during the next step, which still uses the old values. Faster, but
  // the losses differ from all other settings. Evaluations (passes without gradients between steps) and saving see the
  // newest values, and so does the step after them, so their timing changes the losses.
  bool delayed_update = false;
  bool forward_prefetch = true;  // gather the next unit while a unit computes
  BackwardPrefetch backward_prefetch = BackwardPrefetch::kPre;
  bool sync_module_states = true;  // every rank starts with rank 0's values
  // zero3_hpz: the number of ranks that share the second copy. It must be the ranks per node, which 0 means.
  std::int64_t hpz_partition_size = 0;
  // With offload: so many units keep everything on the device, the root first, then from the first unit on; the others'
  // updates take less time.
  std::int64_t units_on_device = 0;
};

// All strategies, in the order of the engine's table; without "auto".
std::vector<std::string> strategy_names();

}  // namespace tessera

// Where each kind of a model's state lives between uses: a strategy is one row of this table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

enum class ShardOver { kNobody, kWorld, kNode };

struct Placement {
  std::string strategy = "single";  // its name, for messages
  ShardOver over;                   // the ranks that split what is split
  bool parameters_split;            // between uses; else every rank keeps them whole
  bool released_after_forward;      // and gathered again for backward
  bool gradients_split;             // reduced in every micro-step; else accumulated whole and reduced in the last
  bool optimizer_split;             // master values and moments; else every rank updates everything
  bool reduced_across_nodes;        // shards are added across nodes, too
  bool offload_optimizer = false;   // master, moments and reduced gradients live in host memory and are updated there
  bool offload_parameters = false;  // so does the shard that gathers send
  bool delayed_update = false;      // an offloaded update runs beside the next step, which still uses the values before

  // The row as it is where a unit is split over so many ranks: alone, what is split would only be copied to and fro.
  Placement on(int num_shards) const;
};

// What may be added to a row. Each is said at its namesake in Placement.
struct OffloadChoice {
  bool optimizer = false, parameters = false, delayed_update = false;
};

// Throws UsageError naming the strategies when `name` is none, or when the row has nothing to offload or to delay.
Placement placement_of(std::string_view name, const OffloadChoice& offload = {});

// All names, in the order of the table.
std::vector<std::string> strategy_names();

}  // namespace tessera

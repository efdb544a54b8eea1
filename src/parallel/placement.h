// Where each kind of model state lives between uses: a strategy is one row of this table. With it, the names and help
// of SpreadOptions (tessera/spread.h), declared once for all commands. (no torch)
//
// A new option is a member there, a line in the option table of placement.cc, and the code that reads it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/schema.h"
#include "tessera/spread.h"

namespace tessera {

enum class Over { kNobody, kNode, kWorld };  // the ranks that something is split over
enum class Home { kDevice, kHost };
enum class StrategyFamily { kPlain, kZero, kFsdp };  // where the strategy's name comes from

struct StatePlace {
  Over over = Over::kNobody;
  Home home = Home::kDevice;

  bool is_split() const { return over != Over::kNobody; }
  bool is_on_host() const { return home == Home::kHost; }
};

struct Placement {
  std::string strategy = "single";  // its name, for messages
  StrategyFamily family = StrategyFamily::kPlain;
  StatePlace parameters;  // between uses; not split: every rank keeps them whole
  StatePlace gradients;   // split: reduced in every micro-step; else accumulated whole and reduced in the last
  StatePlace optimizer;   // master values, moments and the gradient that the update reads
  bool released_after_forward = false;  // parameters are gathered again for backward
  // Where backward gathers from: the ranks that parameters are split over, or (kNode) a second copy in each node.
  Over backward_gathers_from = Over::kNobody;
  bool is_for_one_rank = false;
  bool delayed_update = false;  // an offloaded update runs during the next step, which still uses the old values

  // The ranks that gradients are reduced over first; with kNode they are then reduced across nodes.
  Over reduced_over() const;
  bool reduces_in(bool last_micro_step) const { return last_micro_step || gradients.is_split(); }
  bool keeps_second_copy() const { return backward_gathers_from != parameters.over; }
  bool needs_equal_nodes() const { return reduced_over() == Over::kNode || keeps_second_copy(); }

  // The row on nodes of this size: a second copy saves nothing if the node is the world, and with one rank per node
  // parameters stay gathered instead.
  Placement on_nodes_of(int ranks_per_node, int num_ranks) const;
  // The row for units of `num_shards` shards: a single shard is not split, which would only cost copies.
  Placement in_shards(int num_shards) const;
  // Without offload.
  Placement on_device_alone() const;
};

// Throws UsageError listing the strategies if `name` is not one of them; "auto" is not.
const Placement& placement_of(std::string_view name);
// The row with what the options add. Throws UsageError if the row has nothing to offload or to delay.
Placement placement_of(const SpreadOptions& options);
// The row of one of `num_units` units, the last of which is the root: without offload if it stays on the device.
Placement placement_of_unit(const Placement& row, const SpreadOptions& options, std::size_t index,
                            std::size_t num_units);
// Replaces "auto".
SpreadOptions resolve_strategy(SpreadOptions options, int num_ranks);

std::vector<std::string> strategy_names(StrategyFamily family);
std::vector<std::string> strategies_that_split_parameters();

// Adds the options to a command's settings, with the struct's defaults. `names`: only these; empty: all.
void declare(Schema& schema, SpreadOptions& options, const std::vector<std::string>& names = {});

// Each option's name and value, for comparing ranks.
std::vector<std::pair<std::string, std::string>> describe(const SpreadOptions& options);

}  // namespace tessera

#include "parallel/rank_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <string>

#include "comm/exchange.h"
#include "core/error.h"
#include "core/json.h"
#include "parallel/placement.h"

namespace tessera {
namespace {

// One thing that must match: its name, the same on every rank, and this rank's value.
struct Feature {
  std::string what, value;
};
using Features = std::vector<Feature>;

void add_options(const EngineOptions& options, Features& features) {
  const auto add = [&](const char* what, const auto& value) {
    features.push_back({fmt::format("option {}", what), fmt::format("{}", value)});
  };
  for (const auto& [name, value] : describe(options.spread)) add(name.c_str(), value);
  add("compute type", c10::toString(options.types.compute));
  add("reduce type", c10::toString(options.types.reduce));
  add("accumulates", options.types.accumulates);
  add("device", options.device ? c10::DeviceTypeName(options.device->type(), true) : "that of the parameters");
  add("host_memory_is_separate", options.host_memory_is_separate);
}

const char* name_of(ParameterGroup group) {
  switch (group) {
    case ParameterGroup::kDecaying:
      return "trained";
    case ParameterGroup::kPlain:
      return "trained without weight decay";
    default:
      return "frozen";
  }
}

std::string describe(const std::string& name, const at::Tensor& tensor) {
  return fmt::format("{} of shape [{}], {} on {}", name, fmt::join(tensor.sizes(), ", "),
                     c10::toString(tensor.scalar_type()), c10::DeviceTypeName(tensor.device().type(), true));
}

void add_parameters(const std::vector<std::vector<UnitParameter>>& parameters_of_unit, Features& features) {
  std::size_t index = 0;
  for (std::size_t unit = 0; unit < parameters_of_unit.size(); ++unit) {
    const bool is_root = unit + 1 == parameters_of_unit.size();
    for (const UnitParameter& p : parameters_of_unit[unit]) {
      features.push_back({fmt::format("parameter {}", index++),
                          fmt::format("{}, {}, in {}", describe(p.name, p.parameter), name_of(p.group),
                                      is_root ? "the root" : fmt::format("unit {}", unit))});
    }
  }
}

void add_units(const std::vector<Unit>& units, Features& features) {
  for (std::size_t i = 0; i < units.size(); ++i) {
    features.push_back({fmt::format("unit {}", i), fmt::format("{} ({})", units[i].name, units[i].kind)});
  }
}

void add_buffers(const torch::nn::Module& model, Features& features) {
  std::size_t index = 0;
  for (const auto& item : model.named_buffers()) {
    features.push_back({fmt::format("buffer {}", index++),
                        item.value().defined() ? describe(item.key(), item.value()) : item.key() + ", undefined"});
  }
}

std::string to_text(const Features& features) {
  Json json = Json::array();
  for (const Feature& f : features) json.push_back(Json::array({f.what, f.value}));
  return json_text(json);
}

Features from_text(const std::string& text) {
  Features features;
  for (const Json& item : parse_json(text, "rank 0's model")) features.push_back({item.at(0), item.at(1)});
  return features;
}

// Features come in sections (options, parameters, units, buffers), numbered within each. If one rank has fewer in a
// section, the next section's feature is in that place; the rank with more has the missing one.
std::string difference(const Feature* there, const Feature* here) {
  if (there != nullptr && here != nullptr && there->what == here->what)
    return fmt::format("{} is {} there, and {} here", there->what, there->value, here->value);
  const std::string kinds = "option parameter unit buffer";
  const auto place = [&](const Feature* f) {
    return f == nullptr ? std::string::npos : kinds.find(f->what.substr(0, f->what.find(' ')));
  };
  if (place(there) < place(here)) return fmt::format("{} is {} there, and missing here", there->what, there->value);
  return fmt::format("{} is missing there, and {} here", here->what, here->value);
}

void compare(World& world, const Features& own) {
  const Features theirs = from_text(text_of_first_rank(world, to_text(own), "model structure"));
  for (std::size_t i = 0; i < theirs.size() || i < own.size(); ++i) {
    const Feature* there = i < theirs.size() ? &theirs[i] : nullptr;
    const Feature* here = i < own.size() ? &own[i] : nullptr;
    if (there != nullptr && here != nullptr && there->what == here->what && there->value == here->value) continue;
    throw rendezvous_error(fmt::format("rank {} does not hold rank 0's model, or spreads it differently: {}",
                                       world.rank(), difference(there, here)));
  }
}

}  // namespace

void check_world(const World& world, const SpreadOptions& spread) {
  const Placement placement = placement_of(spread);
  if (placement.is_for_one_rank && world.size() > 1) {
    throw UsageError(
        fmt::format("strategy '{}' is for one rank, but there are {}: choose ddp, a ZeRO or an FSDP strategy",
                    placement.strategy, world.size()));
  }
  if (!placement.needs_equal_nodes()) return;
  std::map<int, int> num_ranks_of;
  for (const int node : world.node_of_rank()) ++num_ranks_of[node];
  for (const auto& [node, num_ranks] : num_ranks_of) {
    if (num_ranks == num_ranks_of.at(0)) continue;
    throw UsageError(
        fmt::format("strategy '{}' needs the same number of ranks on every node, but node 0 has {} and node {} has {}: "
                    "start the same number on each, or choose full_shard",
                    placement.strategy, num_ranks_of.at(0), node, num_ranks));
  }
  if (spread.hpz_partition_size > 0 && spread.hpz_partition_size != num_ranks_of.at(0)) {
    throw UsageError(fmt::format(
        "hpz_partition_size is {}, but nodes have {} ranks: the second copy is split over the ranks of a node; "
        "set it to {} or leave it out",
        spread.hpz_partition_size, num_ranks_of.at(0), num_ranks_of.at(0)));
  }
}

void check_ranks_match(World& world, const torch::nn::Module& model, const std::vector<Unit>& units,
                       const EngineOptions& options,
                       const std::vector<std::vector<UnitParameter>>& parameters_of_unit) {
  if (world.size() == 1) return;
  Features features;
  add_options(options, features);
  add_parameters(parameters_of_unit, features);
  add_units(units, features);
  add_buffers(model, features);
  compare(world, features);
}

}  // namespace tessera

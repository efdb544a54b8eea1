#include "parallel/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "core/error.h"
#include "core/text.h"

namespace tessera {
namespace {

enum class After { kKeep, kRelease };  // what happens to gathered parameters after forward

Placement row(const char* name, StrategyFamily family, Over parameters, Over gradients, Over optimizer, After after,
              Over backward_gathers_from) {
  Placement made;
  made.strategy = name;
  made.family = family;
  made.parameters.over = parameters;
  made.gradients.over = gradients;
  made.optimizer.over = optimizer;
  made.released_after_forward = after == After::kRelease;
  made.backward_gathers_from = backward_gathers_from;
  made.is_for_one_rank = made.strategy == "single";
  return made;
}

// The one list of strategies: messages, help, docs, DeepSpeed's stages and FSDP's words all come from it.
const std::vector<Placement>& rows() {
  using enum Over;
  using enum After;
  using enum StrategyFamily;
  static const std::vector<Placement> all = {
      //                                     parameters gradients optimizer          backward gathers from
      row("single", /*            */ kPlain, kNobody, kNobody, kNobody, kKeep, kNobody),
      row("ddp", /*               */ kPlain, kNobody, kNobody, kNobody, kKeep, kNobody),
      row("zero0", /*              */ kZero, kNobody, kNobody, kNobody, kKeep, kNobody),
      row("zero1", /*              */ kZero, kNobody, kNobody, kWorld, kKeep, kNobody),
      row("zero2", /*              */ kZero, kNobody, kWorld, kWorld, kKeep, kNobody),
      row("zero3", /*              */ kZero, kWorld, kWorld, kWorld, kRelease, kWorld),
      row("zero3_hpz", /*          */ kZero, kWorld, kWorld, kWorld, kRelease, kNode),
      row("full_shard", /*         */ kFsdp, kWorld, kWorld, kWorld, kRelease, kWorld),
      row("shard_grad_op", /*      */ kFsdp, kWorld, kWorld, kWorld, kKeep, kWorld),
      row("hybrid_shard", /*       */ kFsdp, kNode, kNode, kNode, kRelease, kNode),
      row("hybrid_shard_zero2", /* */ kFsdp, kNode, kNode, kNode, kKeep, kNode),
      row("no_shard", /*           */ kFsdp, kNobody, kNobody, kNobody, kKeep, kNobody),
  };
  return all;
}

std::vector<std::string> names_of(const auto& wanted) {
  std::vector<std::string> names;
  for (const Placement& each : rows()) {
    if (wanted(each)) names.push_back(each.strategy);
  }
  return names;
}

const std::vector<std::string>& prefetch_words() {
  static const std::vector<std::string> words = {"none", "backward_pre", "backward_post"};  // in the order of the enum
  return words;
}

// Calls each(name, member, help) for every option.
void for_each_option(const auto& each) {
  each("strategy", &SpreadOptions::strategy,
       "which rank keeps which part of the model's state; auto: single on one rank, ddp on several");
  each("offload_optimizer", &SpreadOptions::offload_optimizer,
       "keep master values, moments and reduced gradients in host memory and update them there");
  each("offload_param", &SpreadOptions::offload_parameters,
       "keep the parameters in host memory between uses; needs a strategy that splits them");
  each("pin_memory", &SpreadOptions::pin_memory, "page-lock the host memory of offloaded state");
  each("delayed_update", &SpreadOptions::delayed_update,
       "run an offloaded update during the next step, which still uses the old values: faster, with different losses, "
       "which also depend on when the run evaluates and saves");
  each("forward_prefetch", &SpreadOptions::forward_prefetch, "gather the next block while a block computes forward");
  each("backward_prefetch", &SpreadOptions::backward_prefetch,
       "gather the next block in backward: before or after a block computes, or not ahead");
  each("sync_module_states", &SpreadOptions::sync_module_states, "start every rank with rank 0's values");
  each("hpz_partition_size", &SpreadOptions::hpz_partition_size,
       "zero3_hpz: number of ranks that share the second copy; must be the ranks per node, which 0 means");
  each("units_on_device", &SpreadOptions::units_on_device,
       "with offload: number of units (blocks of layers) that keep everything on the GPU, the root first");
}

template <typename Value>
std::string text_of(const Value& value) {
  if constexpr (std::is_same_v<Value, BackwardPrefetch>)
    return prefetch_words()[static_cast<std::size_t>(value)];
  else
    return fmt::format("{}", value);
}

}  // namespace

Over Placement::reduced_over() const {
  if (is_for_one_rank) return Over::kNobody;
  return optimizer.over == Over::kNode ? Over::kNode : Over::kWorld;
}

Placement Placement::on_nodes_of(int ranks_per_node, int num_ranks) const {
  Placement placement = *this;
  if (!keeps_second_copy() || (ranks_per_node > 1 && ranks_per_node < num_ranks)) return placement;
  placement.backward_gathers_from = parameters.over;
  if (ranks_per_node == 1 && num_ranks > 1) placement.released_after_forward = false;
  return placement;
}

Placement Placement::in_shards(int num_shards) const {
  Placement placement = *this;
  if (num_shards > 1) return placement;
  if (!parameters.is_on_host()) {
    placement.parameters.over = placement.optimizer.over = Over::kNobody;
    placement.backward_gathers_from = Over::kNobody;
  }
  // Nor does reducing every micro-step help, unless other nodes hold the same shard.
  if (reduced_over() != Over::kNode) placement.gradients.over = Over::kNobody;
  return placement;
}

Placement Placement::on_device_alone() const {
  Placement placement = *this;
  placement.parameters.home = placement.gradients.home = placement.optimizer.home = Home::kDevice;
  placement.delayed_update = false;
  return placement;
}

const Placement& placement_of(std::string_view name) {
  const auto found = std::find_if(rows().begin(), rows().end(), [&](const Placement& p) { return p.strategy == name; });
  if (found != rows().end()) return *found;
  throw UsageError(fmt::format("strategy '{}' is not known{}; strategies: {}", name,
                               did_you_mean(name, strategy_names()), join(strategy_names(), ", ")));
}

Placement placement_of(const SpreadOptions& options) {
  Placement placement = placement_of(options.strategy);
  if (options.offload_parameters && !placement.parameters.is_split()) {
    throw UsageError(fmt::format(
        "offload_param needs a strategy that splits the parameters ({}): with {} every rank keeps them whole on its "
        "device",
        join(strategies_that_split_parameters(), ", "), options.strategy));
  }
  if (options.delayed_update && !options.offload_optimizer) {
    throw UsageError(
        "delayed_update needs offload_optimizer: only an update in host memory can run during the next step");
  }
  if (options.hpz_partition_size > 0 && !placement.keeps_second_copy()) {
    throw UsageError(fmt::format("hpz_partition_size needs strategy zero3_hpz, not {}", options.strategy));
  }
  if (options.units_on_device < 0) {
    throw UsageError(fmt::format("units_on_device is {}: expected 0 or more", options.units_on_device));
  }
  if (options.units_on_device > 0 && !options.offload_optimizer && !options.offload_parameters) {
    throw UsageError(
        "units_on_device needs offload_optimizer or offload_param: without them everything is on the device");
  }
  if (options.units_on_device > 0 && options.delayed_update) {
    throw UsageError(
        "units_on_device cannot be combined with delayed_update: units on the device would be a step ahead of the "
        "others");
  }
  placement.delayed_update = options.delayed_update;
  if (options.offload_optimizer) placement.optimizer.home = placement.gradients.home = Home::kHost;
  if (options.offload_parameters) placement.parameters.home = Home::kHost;
  return placement;
}

Placement placement_of_unit(const Placement& row, const SpreadOptions& options, std::size_t index,
                            std::size_t num_units) {
  const std::size_t turn = (index + 1) % num_units;  // the root's is 0
  return turn < static_cast<std::size_t>(options.units_on_device) ? row.on_device_alone() : row;
}

SpreadOptions resolve_strategy(SpreadOptions options, int num_ranks) {
  if (options.strategy == "auto") options.strategy = num_ranks > 1 ? "ddp" : "single";
  return options;
}

std::vector<std::string> strategy_names() {
  return names_of([](const Placement&) { return true; });
}

std::vector<std::string> strategies_that_split_parameters() {
  return names_of([](const Placement& each) { return each.parameters.is_split(); });
}

std::vector<std::string> strategy_names(StrategyFamily family) {
  return names_of([family](const Placement& each) { return each.family == family; });
}

void declare(Schema& schema, SpreadOptions& options, const std::vector<std::string>& names) {
  const SpreadOptions presets;
  for_each_option([&](const char* name, auto member, const char* help) {
    if (!names.empty() && std::find(names.begin(), names.end(), name) == names.end()) return;
    auto* value = &(options.*member);
    SettingTraits traits = {.preset = text_of(presets.*member)};
    if constexpr (std::is_same_v<decltype(value), bool*>) {
      schema.boolean(name, value, help, traits);
    } else if constexpr (std::is_same_v<decltype(value), std::int64_t*>) {
      traits.at_least = 0;
      schema.integer(name, value, help, traits);
    } else if constexpr (std::is_same_v<decltype(value), std::string*>) {
      traits.choices = strategy_names();
      traits.choices.insert(traits.choices.begin(), "auto");
      schema.text(name, value, help, traits);
    } else {
      schema.word(name, value, prefetch_words(), help, traits);
    }
  });
}

std::vector<std::pair<std::string, std::string>> describe(const SpreadOptions& options) {
  std::vector<std::pair<std::string, std::string>> described;
  for_each_option(
      [&](const char* name, auto member, const char*) { described.emplace_back(name, text_of(options.*member)); });
  return described;
}

}  // namespace tessera

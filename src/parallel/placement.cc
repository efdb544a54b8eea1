#include "parallel/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

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

struct Option {
  const char* name;
  std::variant<bool SpreadOptions::*, std::int64_t SpreadOptions::*, std::string SpreadOptions::*,
               BackwardPrefetch SpreadOptions::*>
      member;
  const char* help;
  std::vector<std::string> choices = {};  // of a text
};

const std::vector<std::string>& prefetch_words() {
  static const std::vector<std::string> words = {"none", "backward_pre", "backward_post"};  // in the order of the enum
  return words;
}

std::vector<std::string> strategy_choices() {
  std::vector<std::string> names = strategy_names();
  names.insert(names.begin(), "auto");
  return names;
}

const std::vector<Option>& option_table() {
  static const std::vector<Option> options = {
      {"strategy", &SpreadOptions::strategy,
       "which rank keeps which part of the model's state; auto: single on one rank, ddp on several",
       strategy_choices()},
      {"offload_optimizer", &SpreadOptions::offload_optimizer,
       "keep master values, moments and reduced gradients in host memory and update them there"},
      {"offload_param", &SpreadOptions::offload_parameters,
       "keep the parameters in host memory between uses; needs a strategy that splits them"},
      {"pin_memory", &SpreadOptions::pin_memory, "page-lock the host memory of offloaded state"},
      {"delayed_update", &SpreadOptions::delayed_update,
       "run an offloaded update during the next step, which still uses the old values: faster, with different losses, "
       "which also depend on when the run evaluates and saves"},
      {"forward_prefetch", &SpreadOptions::forward_prefetch, "gather the next block while a block computes forward"},
      {"backward_prefetch", &SpreadOptions::backward_prefetch,
       "gather the next block in backward: before or after a block computes, or not ahead"},
      {"sync_module_states", &SpreadOptions::sync_module_states, "start every rank with rank 0's values"},
      {"hpz_partition_size", &SpreadOptions::hpz_partition_size,
       "zero3_hpz: number of ranks that share the second copy; must be the ranks per node, which 0 means"},
      {"units_on_device", &SpreadOptions::units_on_device,
       "with offload: number of units (blocks of layers) that keep everything on the GPU, the root first"},
  };
  return options;
}

struct Text {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(const std::string& value) const { return value; }
  std::string operator()(BackwardPrefetch value) const { return prefetch_words()[static_cast<std::size_t>(value)]; }
};

std::string text_of(const Option& option, const SpreadOptions& options) {
  return std::visit([&](const auto member) { return Text()(options.*member); }, option.member);
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
  const auto meant = nearest(std::string(name), strategy_names());
  throw UsageError(fmt::format("strategy '{}' is not known{}; strategies: {}", name,
                               meant ? fmt::format(", did you mean '{}'?", *meant) : "", join(strategy_names(), ", ")));
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
  for (const Option& option : option_table()) {
    if (!names.empty() && std::ranges::find(names, option.name) == names.end()) continue;
    const char* name = option.name;
    const SettingTraits traits = {.preset = text_of(option, presets), .choices = option.choices};
    if (const auto* flag = std::get_if<bool SpreadOptions::*>(&option.member)) {
      schema.boolean(name, &(options.**flag), option.help, traits);
    } else if (const auto* number = std::get_if<std::int64_t SpreadOptions::*>(&option.member)) {
      schema.integer(name, &(options.**number), option.help, {.preset = traits.preset, .at_least = 0});
    } else if (const auto* text = std::get_if<std::string SpreadOptions::*>(&option.member)) {
      schema.text(name, &(options.**text), option.help, traits);
    } else {
      schema.word(name, &options.backward_prefetch, prefetch_words(), option.help, traits);
    }
  }
}

std::vector<std::pair<std::string, std::string>> describe(const SpreadOptions& options) {
  std::vector<std::pair<std::string, std::string>> described;
  for (const Option& option : option_table()) described.emplace_back(option.name, text_of(option, options));
  return described;
}

}  // namespace tessera

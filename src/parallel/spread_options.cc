#include "parallel/spread_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

namespace tessera {
namespace {

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

struct Declare {
  Schema& schema;
  const Option& option;

  Setting& operator()(bool* value) const { return schema.boolean(option.name, value); }
  Setting& operator()(std::int64_t* value) const { return schema.integer(option.name, value).at_least(0); }
  Setting& operator()(BackwardPrefetch* value) const { return schema.word(option.name, value, prefetch_words()); }
  Setting& operator()(std::string* value) const { return schema.text(option.name, value).choices(option.choices); }
};

}  // namespace

void declare(Schema& schema, SpreadOptions& options, const std::string& group, const std::vector<std::string>& names) {
  const SpreadOptions presets;
  for (const Option& option : option_table()) {
    if (!names.empty() && std::find(names.begin(), names.end(), option.name) == names.end()) continue;
    const Declare declare{schema, option};
    Setting& setting =
        std::visit([&](const auto member) -> Setting& { return declare(&(options.*member)); }, option.member);
    setting.preset(text_of(option, presets)).group(group).help(option.help);
  }
}

std::vector<std::pair<std::string, std::string>> describe(const SpreadOptions& options) {
  std::vector<std::pair<std::string, std::string>> described;
  for (const Option& option : option_table()) described.emplace_back(option.name, text_of(option, options));
  return described;
}

}  // namespace tessera

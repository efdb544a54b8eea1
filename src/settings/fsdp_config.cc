#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "parallel/placement.h"
#include "settings/foreign_config.h"

namespace tessera {

namespace {

using F = KeyRule::Form;
using T = KeyRule::Fate;

const std::vector<std::string>& strategies() {
  static const std::vector<std::string> names = strategy_names(StrategyFamily::kFsdp);
  return names;
}

bool is_strategy(const std::string& word) {
  return std::find(strategies().begin(), strategies().end(), word) != strategies().end();
}

[[noreturn]] void refuse_word(const std::string& word) {
  std::vector<std::string> known = strategies();
  known.insert(known.end(), {"auto_wrap", "offload"});
  throw UsageError(fmt::format("--fsdp: unknown word '{}'{}; known words: {}", printable(word, 40),
                               did_you_mean(word, known), join(known, ", ")));
}

std::vector<std::string> words_of(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == ',' || c == '\t' || c == '\n'; }, ' ');
  std::vector<std::string> words;
  for (const std::string& word : split(text, ' ')) {
    if (!word.empty()) words.push_back(lower_case(word));
  }
  return words;
}

// Completes what the rules have read.
class FsdpConfigReader {
 public:
  FsdpConfigReader(const ForeignFile& file, ForeignConfig& config) : file_(file), config_(config) {}

  void run() {
    read_sharding();
    read_wrap();
    read_prefetch();
    read_offload();
    read_mixed_precision();
    const auto sync = file_.find("sync_module_states");
    const auto loads_on_one = file_.find("cpu_ram_efficient_loading");
    if (sync && text_of(*sync) == "false" && loads_on_one && text_of(*loads_on_one) == "true") {
      loads_on_one->refuse("needs sync_module_states: true, or ranks would start with different values");
    }
  }

 private:
  void give(const std::string& setting, const std::string& text, const std::string& key) {
    config_.values.push_back({setting, text, key, file_.place_of(key)});
  }

  void read_sharding() {
    if (const auto value = file_.find("sharding_strategy")) {
      // accelerate also counts them from 1.
      const std::vector<std::string> by_number = {"full_shard", "shard_grad_op", "no_shard", "hybrid_shard",
                                                  "hybrid_shard_zero2"};
      std::string word = lower_case(text_of(*value));
      if (word.size() == 1 && word[0] >= '1' && word[0] <= '5')
        word = by_number[static_cast<std::size_t>(word[0] - '1')];
      if (!is_strategy(word)) {
        value->refuse(fmt::format("expected one of {}, found {}", join(strategies(), ", "), shown(value->json())));
      }
      give("strategy", word, "sharding_strategy");
    }
    if (const auto value = file_.find("reshard_after_forward")) {
      std::string word = lower_case(text_of(*value));
      if (word == "true") word = "full_shard";
      if (word == "false") word = "shard_grad_op";
      if (!is_strategy(word)) value->refuse("expected true or false");
      give("strategy", word, "reshard_after_forward");
    }
  }

  void read_wrap() {
    const std::string key = "transformer_layer_cls_to_wrap";
    const auto classes = file_.find(key);
    const auto size = file_.find("min_num_params");
    const bool by_size = size && size->json().get<double>() > 0;
    if (classes) {
      give("wrap_classes", join(class_names(*classes), ","), key);
      if (by_size) size->refuse("excludes transformer_layer_cls_to_wrap; leave one out");
      give("wrap", "class", key);
    }
    if (by_size) give("wrap", "size", "min_num_params");
    if (const auto policy = file_.find("auto_wrap_policy")) {
      const std::string word = lower_case(policy->json().get<std::string>());
      if (word == "no_wrap") {
        give("wrap", "none", "auto_wrap_policy");
      } else if (word == "size_based_wrap" && !by_size) {
        policy->refuse("SIZE_BASED_WRAP needs min_num_params");
      } else if (word != "transformer_based_wrap" && word != "size_based_wrap") {
        policy->refuse("expected TRANSFORMER_BASED_WRAP, SIZE_BASED_WRAP or NO_WRAP");
      }
    }
  }

  static std::vector<std::string> class_names(const JsonReader& classes) {
    std::vector<std::string> names;
    if (classes.is_string()) {
      names = split(classes.as_text(), ',');
    } else if (classes.is_array()) {
      names = classes.as_texts();
    }
    for (std::string& name : names) name = std::string(trim(name));
    std::erase(names, "");
    if (names.empty()) classes.refuse("expected a class name or an array of them");
    return names;
  }

  void read_prefetch() {
    const auto value = file_.find("backward_prefetch");
    if (!value) return;
    const std::string word = lower_case(value->json().get<std::string>());
    const bool is_none = word == "no_prefetch" || word == "none";
    if (!is_none && word != "backward_pre" && word != "backward_post") {
      value->refuse(
          fmt::format("expected backward_pre, backward_post or no_prefetch, found \"{}\"", printable(word, 40)));
    }
    give("backward_prefetch", is_none ? "none" : word, "backward_prefetch");
  }

  void read_offload() {
    for (const char* key : {"offload_to_cpu", "offload_params", "cpu_offload"}) {
      const auto value = file_.find(key);
      if (!value) continue;
      for (const char* setting : {"offload_param", "offload_optimizer"}) give(setting, text_of(*value), key);
    }
  }

  void read_mixed_precision() {
    const auto enabled = file_.find("mixed_precision.enabled");
    const auto type = file_.find("mixed_precision.param_dtype");
    const bool is_off = enabled && text_of(*enabled) == "false";
    if (type && !is_off) {
      const std::string key = "mixed_precision.param_dtype";
      const std::string word = number_type_of(*type);
      if (word == "fp32") {
        for (const char* half : {"fp16", "bf16"}) give(half, "false", key);
      } else {
        give(word, "true", key);
        // The other type yields to the file, too, unless the command line asks for it: that is refused.
        config_.values.push_back({word == "fp16" ? "bf16" : "fp16", "false", key, file_.place_of(key), true});
      }
    } else if (enabled && !is_off) {
      file_.find("mixed_precision")->refuse_key("needs param_dtype: fp16 or bf16");
    }
    if (is_off) {
      for (const char* half : {"fp16", "bf16"}) give(half, "false", "mixed_precision.enabled");
      return;
    }
    for (const char* name : {"reduce_dtype", "buffer_dtype"}) {
      const std::string key = std::string("mixed_precision.") + name;
      if (file_.find(key)) give(name, number_type_of(*file_.find(key)), key);
    }
  }

  const ForeignFile& file_;
  ForeignConfig& config_;
};

}  // namespace

ForeignConfig read_fsdp_words(const std::string& text) {
  std::vector<std::string> words = words_of(text);
  if (words == std::vector<std::string>{"true"}) words = {"full_shard"};
  if (words == std::vector<std::string>{"false"}) words.clear();
  ForeignConfig config;
  config.origin = "--fsdp";
  std::string strategy;
  const auto give = [&](const char* setting, const std::string& value, const std::string& word) {
    config.values.push_back({setting, value, word, "--fsdp"});
  };
  for (const std::string& word : words) {
    if (is_strategy(word)) {
      if (!strategy.empty() && strategy != word) {
        throw UsageError(fmt::format("--fsdp \"{}\": {} and {} exclude each other", text, strategy, word));
      }
      strategy = word;
      give("strategy", word, word);
    } else if (word == "offload") {
      give("offload_param", "true", word);
      give("offload_optimizer", "true", word);
    } else if (word != "auto_wrap") {
      refuse_word(word);
    }
  }
  if (!words.empty() && strategy.empty()) {
    throw UsageError(fmt::format("--fsdp \"{}\": needs one of {} as well", text, join(strategies(), ", ")));
  }
  return config;
}

const std::vector<KeyRule>& fsdp_config_rules() {
  constexpr const char* kOriginal = "parameters always keep their own names and shapes";
  constexpr const char* kTpu = "there are no TPUs";
  static const std::vector<KeyRule> rules = {
      {"transformer_layer_cls_to_wrap", F::kAny, T::kReader},
      {"min_num_params", F::kCount, T::kSetting, "min_num_params"},
      {"auto_wrap_policy", F::kText, T::kReader},
      {"sharding_strategy", F::kAny, T::kReader},
      {"reshard_after_forward", F::kAny, T::kReader},
      {"backward_prefetch", F::kText, T::kReader},
      {"forward_prefetch", F::kBool, T::kSetting, "forward_prefetch"},
      {"sync_module_states", F::kBool, T::kSetting, "sync_module_states"},
      {"activation_checkpointing", F::kBool, T::kSetting, "gradient_checkpointing"},
      {"offload_to_cpu", F::kBool, T::kReader},
      {"offload_params", F::kBool, T::kReader},
      {"cpu_offload", F::kBool, T::kReader},
      {"mixed_precision", F::kSection, T::kReader},
      {"mixed_precision.enabled", F::kBool, T::kReader},
      {"mixed_precision.param_dtype", F::kText, T::kReader},
      {"mixed_precision.reduce_dtype", F::kText, T::kReader},
      {"mixed_precision.buffer_dtype", F::kText, T::kReader},
      {"limit_all_gathers", F::kBool, T::kNoEffect, "at most two blocks are gathered at a time"},
      {"use_orig_params", F::kBool, T::kNoEffect, kOriginal},
      {"cpu_ram_efficient_loading", F::kBool, T::kNoEffect, "every rank reads only what it keeps"},
      {"device_id", F::kAny, T::kNoEffect, "a rank's device follows from its place on the node"},
      {"state_dict_type", F::kText, T::kNoEffect, "the model's folder and checkpoints are whole files"},
      {"version", F::kCount, T::kNoEffect, "there is one engine for both"},
      {"xla", F::kBool, T::kOnly, kTpu, "false"},
      {"xla_fsdp_v2", F::kBool, T::kOnly, kTpu, "false"},
      {"xla_fsdp_grad_ckpt", F::kBool, T::kOnly, kTpu, "false"},
      {"xla_fsdp_settings", F::kSection, T::kOff, kTpu},
  };
  return rules;
}

ForeignConfig read_fsdp_config(const std::string& origin, const std::string& text) {
  const ForeignFile file(origin, text, "fsdp_");
  ForeignConfig config = walk(file, fsdp_config_rules());
  FsdpConfigReader(file, config).run();
  return config;
}

}  // namespace tessera

#include "experiment/import/accelerate_config.h"

#include <fmt/format.h>

#include <set>

#ifdef TESSERA_HAS_YAML
#include <yaml-cpp/yaml.h>
#endif

#include "core/error.h"
#include "core/text.h"
#include "settings/foreign_config.h"

namespace tessera {
namespace {

constexpr std::string_view kFsdpSection = "fsdp_config.", kDeepspeedSection = "deepspeed_config.";

// Words between blanks.
constexpr std::string_view kDeepspeedNames =
    " deepspeed_config_file deepspeed_hostfile deepspeed_multinode_launcher gradient_accumulation_steps "
    "gradient_clipping offload_optimizer_device offload_param_device zero3_init_flag zero3_save_16bit_model "
    "zero_stage ";
// Facts about machines, and defaults that change nothing.
constexpr std::string_view kIdleKeys =
    " compute_environment machine_rank main_process_ip main_process_port main_training_function rdzv_backend "
    "rdzv_conf same_network debug gpu_ids use_cpu tpu_env tpu_use_cluster tpu_use_sudo downcast_bf16 "
    "enable_cpu_affinity config_file multi_gpu use_fsdp use_deepspeed quiet q m module max_restarts "
    "monitor_interval num_cpu_threads_per_process tee role dynamo_backend ";

bool holds(std::string_view words, const std::string& word) {
  return words.find(" " + word + " ") != std::string_view::npos;
}

const KeyRule* fsdp_rule(const std::string& key) {
  for (const KeyRule& rule : fsdp_config_rules()) {
    if (rule.section().empty() && key == rule.key()) return &rule;
  }
  return nullptr;
}

#ifdef TESSERA_HAS_YAML
// Sections within sections are not followed: an alias of one could make it endless.
void add_yaml_section(const YAML::Node& section, const std::string& name, const std::string& origin,
                      AccelerateKeys& keys, Remarks& remarks) {
  const auto skip = [&](const YAML::Node& node) {
    const std::string place = fmt::format("{}:{}", origin, node.Mark().line + 1);
    remarks.all.push_back({Remark::Kind::kLeftOut, place, "a line", "expected key: value"});
  };
  if (section.IsNull()) return;
  if (!section.IsMap()) return skip(section);
  for (const auto& member : section) {
    const YAML::Node& value = member.second;
    const std::string key = name + member.first.Scalar();
    if (value.IsScalar() && !value.Scalar().empty()) {
      keys[key] = value.Scalar();
    } else if (value.IsMap() && name.empty()) {
      add_yaml_section(value, key + ".", origin, keys, remarks);
    } else if ((value.IsMap() || value.IsSequence()) && value.size() > 0) {
      skip(value);
    }
  }
}
#endif

class AccelerateInterpreter {
 public:
  AccelerateInterpreter(const AccelerateKeys& keys, Remarks& remarks) : keys_(keys), remarks_(remarks) {}

  AccelerateConfig run() {
    made_.processes = slurm_count(take("num_processes"));
    made_.machines = slurm_count(take("num_machines"));
    read_type();
    read_precision();
    for (const auto& [key, value] : keys_) {
      if (!used_.contains(key) && !holds(kIdleKeys, key)) remarks_.add(Remark::Kind::kLeftOut, key, "not understood");
    }
    return std::move(made_);
  }

 private:
  std::string take(const std::string& key) {
    used_.insert(key);
    const auto found = keys_.find(key);
    return found == keys_.end() ? "" : found->second;
  }

  void give(const std::string& setting, const std::string& value) {
    made_.settings.set(setting, value, remarks_.place);
  }

  void read_type() {
    std::string type = lower_case(take("distributed_type"));
    if (keys_.contains("use_fsdp")) type = "fsdp";
    if (keys_.contains("use_deepspeed") || keys_.contains("deepspeed_config.deepspeed_config_file")) type = "deepspeed";
    if (type == "fsdp") {
      read_fsdp();
    } else if (type == "deepspeed") {
      read_deepspeed();
    } else if (!type.empty() && type != "multi_gpu" && type != "no" && type != "multi_cpu") {
      remarks_.add(Remark::Kind::kLeftOut, "distributed_type " + printable(type, 40), "Tessera has no such strategy");
    }
    // A section of a strategy that is not chosen says nothing.
    for (const auto& [key, value] : keys_) {
      if (key.starts_with(kFsdpSection) || key.starts_with(kDeepspeedSection)) used_.insert(key);
    }
  }

  void read_fsdp() {
    made_.fsdp_config = Json::object();
    for (const auto& [key, value] : keys_) {
      if (!key.starts_with(kFsdpSection)) continue;
      std::string name = key.substr(kFsdpSection.size());
      if (name.starts_with("fsdp_")) name.erase(0, 5);
      if (name == "backward_prefetch_policy") name = "backward_prefetch";
      const KeyRule* rule = fsdp_rule(name);
      if (rule == nullptr) {
        remarks_.add(Remark::Kind::kLeftOut, key, "not a key that Tessera knows");
        continue;
      }
      made_.fsdp_config[name] = fsdp_value(*rule, value);
    }
    if (!made_.fsdp_config.contains("sharding_strategy") && !made_.fsdp_config.contains("reshard_after_forward")) {
      made_.fsdp_config["sharding_strategy"] = "FULL_SHARD";  // accelerate's default
    }
    // An empty size is how accelerate's questionnaire says that classes are wrapped.
    if (made_.fsdp_config.contains("transformer_layer_cls_to_wrap")) made_.fsdp_config.erase("min_num_params");
    remarks_.add(Remark::Kind::kTaken, "fsdp_config", "--fsdp_config, as a file of its own");
  }

  static Json fsdp_value(const KeyRule& rule, const std::string& value) {
    const std::string lower = lower_case(value);
    if (rule.form == KeyRule::Form::kBool) return lower == "true" || lower == "yes" || lower == "1";
    const auto number = parse_integer(value);
    if (rule.form == KeyRule::Form::kCount && number) return *number;
    if ((lower == "true" || lower == "false") && rule.form == KeyRule::Form::kAny) return lower == "true";
    return value;
  }

  void read_deepspeed() {
    const auto key = [](const char* name) { return std::string(kDeepspeedSection) + name; };
    made_.deepspeed_file = take(key("deepspeed_config_file"));
    if (!made_.deepspeed_file.empty()) return;
    const std::string stage = take(key("zero_stage"));
    give("strategy", "zero" + (stage.empty() ? "2" : stage));  // 2: accelerate's default
    for (const char* part : {"optimizer", "param"}) {
      const std::string device = take(key((std::string("offload_") + part + "_device").c_str()));
      if (device == "cpu") give(std::string("offload_") + part, "true");
      if (device == "nvme")
        remarks_.add(Remark::Kind::kLeftOut, "offload to nvme", "Tessera offloads to host memory only");
    }
    const std::string steps = take(key("gradient_accumulation_steps"));
    if (parse_integer(steps)) give("gradient_accumulation_steps", steps);
    const std::string clipping = take(key("gradient_clipping"));
    if (parse_real(clipping)) give("max_grad_norm", clipping);
  }

  void read_precision() {
    const std::string word = lower_case(take("mixed_precision"));
    if (word == "fp16" || word == "bf16") give(word, "true");
    if (word == "fp8")
      remarks_.add(Remark::Kind::kLeftOut, "mixed_precision fp8", "Tessera computes in fp32, fp16 or bf16");
  }

  const AccelerateKeys& keys_;
  Remarks& remarks_;
  std::set<std::string> used_;
  AccelerateConfig made_;
};

}  // namespace

AccelerateKeys read_accelerate_yaml(const std::string& text, const std::string& origin, Remarks& remarks) {
#ifdef TESSERA_HAS_YAML
  try {
    AccelerateKeys keys;
    add_yaml_section(YAML::Load(text), "", origin, keys, remarks);
    return keys;
  } catch (const YAML::Exception& error) {
    throw UsageError(fmt::format("{}:{}: {}", origin, error.mark.line + 1, printable(error.msg)));
  }
#else
  (void)text, (void)remarks;
  refuse_file(origin, "this build reads no YAML: build with yaml-cpp, or give accelerate's options on its line");
#endif
}

void add_accelerate_options(const LaunchLine& launch, AccelerateKeys& keys, Remarks& remarks) {
  for (const auto& [name, value] : launch.options) {
    if (holds(kIdleKeys, name) && name != "use_fsdp" && name != "use_deepspeed") continue;
    if (!value.is_known()) {
      remarks.add(Remark::Kind::kComputed, "accelerate --" + name, value.unknown);
      continue;
    }
    const bool is_fsdp = name.starts_with("fsdp_");
    const std::string section(is_fsdp ? kFsdpSection : holds(kDeepspeedNames, name) ? kDeepspeedSection : "");
    keys[section + name] = value.text;
  }
}

AccelerateConfig interpret_accelerate(const AccelerateKeys& keys, Remarks& remarks) {
  return AccelerateInterpreter(keys, remarks).run();
}

}  // namespace tessera

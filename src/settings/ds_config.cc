#include <fmt/format.h>

#include "core/error.h"
#include "core/text.h"
#include "settings/foreign_config.h"

namespace tessera {

namespace {

constexpr const char* kOptimizerType = "optimizer.type";
constexpr const char* kSchedulerType = "scheduler.type";

// Completes what the rules have read.
class DsConfigReader {
 public:
  DsConfigReader(const ForeignFile& file, ForeignConfig& config) : file_(file), config_(config) {}

  // Called before the keys are walked: an unknown optimizer would have unknown parameters.
  void check_types() const {
    const auto is_text = [this](const char* key) { return file_.find(key) && file_.find(key)->is_string(); };
    if (is_text(kOptimizerType)) optimizer_type();
    if (is_text(kSchedulerType)) scheduler_type();
  }

  void run() {
    read_stage();
    read_offload();
    read_prefetch();
    read_optimizer();
    read_scheduler();
    add_loss_scale_defaults();
    if (const auto type = file_.find("communication_data_type")) {
      give("reduce_dtype", number_type_of(*type), "communication_data_type");
    }
  }

 private:
  void give(const std::string& setting, const std::string& text, const std::string& key) {
    config_.values.push_back({setting, text, key, file_.place_of(key)});
  }

  // What DeepSpeed does if the file says nothing.
  void give_default(const std::string& setting, const std::string& text, const std::string& key) {
    if (file_.find(key)) return;
    config_.values.push_back({setting, text, key + ", DeepSpeed's default", file_.root().source().origin, true});
  }

  // A word from a list, in upper or lower case, as DeepSpeed compares it; `other` is the advice if it is none of them.
  std::string word_of(const std::string& key, const std::vector<std::string>& words, const std::string& other) const {
    const std::string word = file_.find(key)->json().get<std::string>();
    for (const std::string& allowed : words) {
      if (lower_case(word) == lower_case(allowed)) return allowed;
    }
    file_.find(key)->refuse(fmt::format("expected {}, found \"{}\"{}", join(words, ", "), printable(word, 40), other));
  }

  std::string optimizer_type() const { return word_of(kOptimizerType, {"Adam", "AdamW", "SGD", "Lion"}, ""); }
  std::string scheduler_type() const {
    return word_of(kSchedulerType, {"WarmupLR", "WarmupDecayLR"},
                   "; leave the scheduler out and give --lr_scheduler_type for others");
  }

  void read_stage() {
    // DeepSpeed's first form, which its introduction still shows: true is stage 1.
    if (const auto zero = file_.find("zero_optimization"); zero && zero->json().is_boolean()) {
      stage_ = zero->json().get<bool>() ? 1 : 0;
      give("strategy", stage_ == 1 ? "zero1" : "zero0", "zero_optimization");
      return;
    }
    const auto stage = file_.find("zero_optimization.stage");
    const std::string text = !stage ? "0" : text_of(*stage);
    if (stage && (text.size() != 1 || text[0] < '0' || text[0] > '3')) {
      stage->refuse(fmt::format("expected 0, 1, 2 or 3, found {}", text));
    }
    stage_ = text[0] - '0';
    if (!read_second_copy()) give("strategy", "zero" + text, "zero_optimization.stage");
  }

  // ZeRO++: a second copy of the parameters within each node. In DeepSpeed 1 means none.
  bool read_second_copy() {
    const std::string key = "zero_optimization.zero_hpz_partition_size";
    const auto size = file_.find(key);
    if (!size || size->json().get<double>() <= 1) return false;
    if (stage_ != 3) size->refuse(fmt::format("needs stage 3, found stage {}", stage_));
    give("strategy", "zero3_hpz", key);
    give("hpz_partition_size", text_of(*size), key);
    return true;
  }

  void read_offload() {
    const bool optimizer = read_device("offload_optimizer");
    const bool param = read_device("offload_param");
    if (optimizer && stage_ == 0) {
      file_.find("zero_optimization.offload_optimizer")->refuse("needs stage 1, 2 or 3, found stage 0");
    }
    if (param && stage_ < 3) {
      file_.find("zero_optimization.offload_param")->refuse(fmt::format("needs stage 3, found stage {}", stage_));
    }
  }

  // Whether that part is offloaded; its pin_memory counts only then.
  bool read_device(const std::string& part) {
    const std::string section = "zero_optimization." + part;
    if (!file_.find(section)) return false;
    const std::string key = section + ".device";
    const bool is_given = file_.find(key).has_value();
    const bool is_on = is_given && word_of(key, {"none", "cpu"}, advice_on_device(key)) == "cpu";
    give(part, is_on ? "true" : "false", is_given ? key : section);
    const auto pin = file_.find(section + ".pin_memory");
    if (is_on && pin) give("pin_memory", text_of(*pin), section + ".pin_memory");
    return is_on;
  }

  std::string advice_on_device(const std::string& key) const {
    return file_.find(key)->json().get<std::string>() == "nvme" ? ": Tessera does not offload to disks; use cpu" : "";
  }

  // In DeepSpeed 0 means none; any other size means that the next block is gathered ahead.
  void read_prefetch() {
    const std::string key = "zero_optimization.stage3_prefetch_bucket_size";
    const auto size = file_.find(key);
    if (!size || stage_ < 3) return;
    if (size->json() == "auto") return;  // keeps the default: on
    const bool is_on = size->json().get<double>() > 0;
    give("forward_prefetch", is_on ? "true" : "false", key);
    if (!is_on) give("backward_prefetch", "none", key);
  }

  void read_optimizer() {
    if (!file_.find("optimizer")) return;
    if (!file_.find(kOptimizerType)) file_.find("optimizer")->refuse_key("needs a type: Adam, AdamW, SGD or Lion");
    const std::string type = optimizer_type();
    // DeepSpeed's Adam decays as AdamW does, unless told otherwise.
    const auto adam_w_mode = file_.find("optimizer.params.adam_w_mode");
    const bool is_plain = type == "Adam" && adam_w_mode && text_of(*adam_w_mode) != "true";
    give("optim",
         type == "SGD"    ? "sgd"
         : type == "Lion" ? "lion_32bit"
         : is_plain       ? "adam"
                          : "adamw_torch_fused",
         is_plain ? "optimizer.params.adam_w_mode" : kOptimizerType);
    if (type == "Lion") give_default("adam_beta2", "0.99", "optimizer.params.betas");
    read_betas();
  }

  void read_betas() {
    const std::string key = "optimizer.params.betas";
    const auto betas = file_.find(key);
    if (!betas || betas->json() == "auto") return;
    const bool is_pair =
        betas->is_array() && betas->size() == 2 && betas->json()[0].is_number() && betas->json()[1].is_number();
    if (!is_pair) betas->refuse("expected two numbers, [0.9, 0.999], or \"auto\"");
    give("adam_beta1", text_of(betas->json()[0]), key);
    give("adam_beta2", text_of(betas->json()[1]), key);
  }

  void read_scheduler() {
    if (!file_.find("scheduler")) return;
    if (!file_.find(kSchedulerType)) file_.find("scheduler")->refuse_key("needs a type: WarmupLR or WarmupDecayLR");
    const std::string type = scheduler_type();
    give("lr_scheduler_type", type, kSchedulerType);
    give_default("warmup_steps", "1000", "scheduler.params.warmup_num_steps");
    const std::string total = "scheduler.params.total_num_steps";
    const auto steps = file_.find(total);
    if (type == "WarmupLR" && steps) steps->refuse_key("WarmupLR has no end; use WarmupDecayLR");
    if (type == "WarmupDecayLR" && !steps) {
      file_.find("scheduler")->refuse_key("WarmupDecayLR needs params.total_num_steps: a number or \"auto\"");
    }
    if (steps && steps->json() != "auto") give("lr_total_steps", text_of(*steps), total);
  }

  void add_loss_scale_defaults() {
    give_default("loss_scale_window", "1000", "fp16.loss_scale_window");
    give_default("hysteresis", "2", "fp16.hysteresis");
    give_default("min_loss_scale", "1", "fp16.min_loss_scale");
  }

  const ForeignFile& file_;
  ForeignConfig& config_;
  int stage_ = 0;
};

}  // namespace

ForeignConfig read_ds_config(const std::string& origin, const std::string& text) {
  const ForeignFile file(origin, text);
  ForeignConfig config;
  DsConfigReader reader(file, config);
  reader.check_types();
  config = walk(file, ds_config_rules());
  reader.run();
  return config;
}

}  // namespace tessera

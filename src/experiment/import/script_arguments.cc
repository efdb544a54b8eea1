#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/text.h"
#include "experiment/import/imported_settings.h"
#include "settings/declared.h"

namespace tessera {
namespace {

// Names that training scripts give to settings; only used if the job has no setting of that name itself.
const std::map<std::string, std::string>& usual_names() {
  static const std::map<std::string, std::string> all = {{"accumulation_steps", "gradient_accumulation_steps"},
                                                         {"checkpoint_dir", "output_dir"},
                                                         {"data_path", "data_dir"},
                                                         {"deepspeed_config", "deepspeed"},
                                                         {"ds_config", "deepspeed"},
                                                         {"eval_batch_size", "per_device_eval_batch_size"},
                                                         {"eval_size", "max_eval_samples"},
                                                         {"grad_acc", "gradient_accumulation_steps"},
                                                         {"grad_acc_steps", "gradient_accumulation_steps"},
                                                         {"max_seq_len", "max_length"},
                                                         {"max_seq_length", "max_length"},
                                                         {"model", "model_name_or_path"},
                                                         {"model_id", "model_name_or_path"},
                                                         {"model_name", "model_name_or_path"},
                                                         {"num_epochs", "num_train_epochs"},
                                                         {"per_device_batch_size", "per_device_train_batch_size"},
                                                         {"save_dir", "output_dir"},
                                                         {"train_size", "max_train_samples"},
                                                         {"wd", "weight_decay"},
                                                         {"workers", "dataloader_num_workers"}};
  return all;
}

class ArgumentReader {
 public:
  ArgumentReader(const Schema& schema, const std::string& job, ScriptFacts& script)
      : schema_(schema), job_(job), arguments_(script.launch.arguments), remarks_(script.remarks) {}

  std::vector<std::string> read() {
    while (at_ < arguments_.size()) {
      const ShellValue& word = arguments_[at_++];
      if (!is_script_option(word.text)) {
        remarks_.add(word.is_known() ? Remark::Kind::kLeftOut : Remark::Kind::kComputed, printable(word.text, 60),
                     word.is_known() ? "a word without an option before it" : word.unknown);
        continue;
      }
      take_option(word);
    }
    return std::move(taken_);
  }

 private:
  static bool is_script_option(const std::string& word) {
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    return word.size() > 1 && word[0] == '-' && (word[1] == '-' || is_letter(word[1]));
  }

  void take_option(const ShellValue& word) {
    const std::size_t equals = word.text.find('=');
    ShellValues values;
    if (equals != std::string::npos) values.push_back({word.text.substr(equals + 1), word.unknown});
    while (at_ < arguments_.size() && !is_script_option(arguments_[at_].text)) {
      values.push_back(arguments_[at_++]);
    }
    decide(option_name(word.text), values);
  }

  void decide(const std::string& name, const ShellValues& values) {
    const std::string shown = "--" + printable(name, 60);
    std::string setting = name;
    const auto usual = usual_names().find(name);
    const bool is_own = schema_.has(name) && !schema_.at(name).is_hidden();
    if (!is_own && usual != usual_names().end() && schema_.has(usual->second)) setting = usual->second;
    // deepspeed.add_config_arguments(): --deepspeed is a switch, and the file follows --deepspeed_config.
    if (name == "deepspeed" && values.empty()) return;
    if (name == "local_rank") return remarks_.add(Remark::Kind::kNotNeeded, shown, "ranks know their number");
    for (const std::vector<ForeignArgument>* const all : {&foreign_arguments(), &other_words()}) {
      for (const ForeignArgument& argument : *all) {
        if (setting != argument.name || !schema_.at(setting).is_hidden()) continue;
        const auto kind = argument.is_refused() ? Remark::Kind::kLeftOut : Remark::Kind::kNotNeeded;
        return remarks_.add(kind, shown, argument.reason);
      }
    }
    const bool negates = setting.starts_with("no_") && !schema_.has(setting) && schema_.has(setting.substr(3));
    if (!negates && !schema_.has(setting)) {
      return remarks_.add(Remark::Kind::kLeftOut, shown, fmt::format("not a setting of {}", job_));
    }
    for (const ShellValue& value : values) {
      if (!value.is_known()) return remarks_.add(Remark::Kind::kComputed, shown, value.unknown);
    }
    give(setting, values);
  }

  void give(const std::string& setting, const ShellValues& values) {
    std::string word = "--" + setting;
    const bool is_list = setting == "report_to";  // nargs="+" of argparse
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i == 0) word += "=" + values[i].text;
      if (i > 0 && is_list) word += "," + values[i].text;
      if (i > 0 && !is_list)
        remarks_.add(Remark::Kind::kLeftOut, printable(values[i].text, 60),
                     fmt::format("--{} takes one value", setting));
    }
    taken_.push_back(word);
  }

  const Schema& schema_;
  const std::string& job_;
  const ShellValues& arguments_;
  Remarks& remarks_;
  std::size_t at_ = 0;
  std::vector<std::string> taken_;
};

bool begins_with_any(const std::string& name, std::initializer_list<const char*> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](const char* prefix) { return name.starts_with(prefix); });
}

bool is_secret_name(const std::string& name) {
  for (const char* part : {"API_KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"}) {
    if (name.find(part) != std::string::npos && name != "TOKENIZERS_PARALLELISM") return true;
  }
  return false;
}

bool is_about_ranks(const std::string& name) {
  static const std::vector<std::string> all = {
      "MASTER_ADDR", "MASTER_PORT", "RANK",      "LOCAL_RANK", "WORLD_SIZE", "NODE_RANK", "NNODES",
      "NODELIST",    "NODES",       "HOSTNAMES", "COUNT_NODE", "RDZV_HOST",  "RDZV_PORT", "LOCAL_WORLD_SIZE"};
  return std::find(all.begin(), all.end(), name) != all.end() || name.find("HEAD_NODE") != std::string::npos ||
         name.starts_with("SLURM_") || name.ends_with("_ENDPOINT");
}

// Read by libraries that Tessera also uses.
bool is_for_libraries(const std::string& name) {
  return begins_with_any(name, {"NCCL_", "TORCH_NCCL_", "TORCH_DISTRIBUTED_", "OMP_", "MKL_", "UCX_", "CUBLAS_",
                                "CUDA_LAUNCH_", "CUDA_DEVICE_", "GLOO_", "FI_"}) ||
         name == "HF_HOME" || name == "PYTORCH_CUDA_ALLOC_CONF" || name == "PYTORCH_ALLOC_CONF";
}

bool is_for_python(const std::string& name) {
  return begins_with_any(
             name, {"PYTHON", "CONDA_", "HF_", "HUGGINGFACE_", "TRANSFORMERS_", "TOKENIZERS_", "WANDB_", "TRITON_",
                    "TORCH_HOME", "TORCH_EXTENSIONS", "TF_", "XDG_", "DS_", "ACCELERATE_", "PIP_", "VIRTUAL_ENV"}) ||
         name == "PATH" || name == "LD_LIBRARY_PATH" || name == "TMPDIR";
}

class EnvironmentReader {
 public:
  EnvironmentReader(const std::vector<std::string>& setting_names, ScriptFacts& script, Values& kept)
      : setting_names_(setting_names), script_(script), remarks_(script.remarks), kept_(kept) {}

  Environment read() {
    const LaunchLine& launch = script_.launch;
    for (const auto& [name, variable] : launch.variables.all()) {
      if (variable.values.empty() || variable.place.empty()) continue;  // of Slurm and the host
      remarks_.place = variable.place;
      variable.is_exported ? decide(name, variable.values[0]) : decide_unexported(name);
    }
    remarks_.place = launch.place;
    for (const auto& [name, value] : launch.command.variables) decide(name, value);
    for (const SbatchOption& option : launch.command.wrapper_options) {
      if (option.name == "export") read_srun_export(option.value);
    }
    return std::move(settings_);
  }

 private:
  bool is_setting(const std::string& name) const {
    return std::find(setting_names_.begin(), setting_names_.end(), name) != setting_names_.end();
  }

  void decide(const std::string& name, const ShellValue& value) {
    if (is_secret_name(name)) return remarks_.add(Remark::Kind::kNotNeeded, name, "a secret: it stays out of the file");
    if (is_about_ranks(name))
      return remarks_.add(Remark::Kind::kNotNeeded, name, "ranks find each other by themselves");
    if (name == "CUDA_VISIBLE_DEVICES")
      return remarks_.add(Remark::Kind::kNotNeeded, name, "the resources say how many GPUs are used");
    if (name == "WANDB_MODE" && value.text == "online") {
      return remarks_.add(Remark::Kind::kNotNeeded, "WANDB_MODE=online",
                          "W&B runs are written offline; `wandb sync` uploads them");
    }
    const bool is_kept = is_setting(name) || is_for_libraries(name);
    if (is_kept && !value.is_known()) return remarks_.add(Remark::Kind::kComputed, name, value.unknown);
    if (is_setting(name)) return settings_.set(name, value.text);
    if (is_for_libraries(name)) {
      kept_.set(name, value.text, remarks_.place);
      return remarks_.add(Remark::Kind::kTaken, name, fmt::format("environment: {}", printable(value.text, 60)));
    }
    if (is_for_python(name)) return remarks_.add(Remark::Kind::kNotNeeded, name, "only Python programs read it");
    if (script_.referenced.contains(name)) return;  // its value is where it was used
    remarks_.add(Remark::Kind::kLeftOut, name, "not a variable of the job");
  }

  void decide_unexported(const std::string& name) {
    if (!is_setting(name) || script_.referenced.contains(name)) return;
    remarks_.add(Remark::Kind::kLeftOut, name, "it is not exported, so the Python program never saw it");
  }

  // --export=ALL,NAME=value
  void read_srun_export(const std::string& list) {
    for (const std::string& item : split(list, ',')) {
      const std::size_t equals = item.find('=');
      if (equals == std::string::npos) continue;
      const std::string text = item.substr(equals + 1);
      decide(item.substr(0, equals), {text, text.starts_with('$') ? text + " is known to a shell only" : ""});
    }
  }

  const std::vector<std::string>& setting_names_;
  const ScriptFacts& script_;
  Remarks& remarks_;
  Values& kept_;
  Environment settings_;
};

}  // namespace

std::vector<std::string> arguments_for(const Schema& schema, const std::string& job, ScriptFacts& script) {
  return ArgumentReader(schema, job, script).read();
}

Environment read_script_environment(const std::vector<std::string>& setting_names, ScriptFacts& script, Values& kept) {
  return EnvironmentReader(setting_names, script, kept).read();
}

}  // namespace tessera

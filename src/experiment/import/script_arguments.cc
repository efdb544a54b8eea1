#include "experiment/import/script_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/text.h"
#include "settings/hugging_face.h"

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

const ForeignArgument* foreign_argument(const std::string& name) {
  for (const ForeignArgument& argument : foreign_arguments()) {
    if (name == argument.name) return &argument;
  }
  return nullptr;
}

class ArgumentReader {
 public:
  ArgumentReader(const Schema& schema, const LaunchLine& launch, const std::string& job, Remarks& remarks)
      : schema_(schema), launch_(launch), job_(job), remarks_(remarks) {}

  std::vector<std::string> read() {
    const ShellValues& all = launch_.arguments;
    while (at_ < all.size()) {
      const ShellValue& word = all[at_++];
      if (!is_script_option(word.text)) {
        remark(word.is_known() ? Remark::Kind::kLeftOut : Remark::Kind::kComputed, printable(word.text, 60),
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

  void remark(Remark::Kind kind, const std::string& what, const std::string& why) {
    remarks_.push_back({kind, launch_.place, what, why});
  }

  void take_option(const ShellValue& word) {
    const std::size_t equals = word.text.find('=');
    std::string name = word.text.substr(word.text.starts_with("--") ? 2 : 1);
    name = name.substr(0, name.find('='));
    std::replace(name.begin(), name.end(), '-', '_');
    ShellValues values;
    if (equals != std::string::npos) values.push_back({word.text.substr(equals + 1), word.unknown});
    while (at_ < launch_.arguments.size() && !is_script_option(launch_.arguments[at_].text)) {
      values.push_back(launch_.arguments[at_++]);
    }
    decide(name, values);
  }

  void decide(const std::string& name, const ShellValues& values) {
    const std::string shown = "--" + printable(name, 60);
    std::string setting = name;
    const auto usual = usual_names().find(name);
    if (!schema_.has(name) && usual != usual_names().end() && schema_.has(usual->second)) setting = usual->second;
    // deepspeed.add_config_arguments(): --deepspeed is a switch, and the file follows --deepspeed_config.
    if (name == "deepspeed" && values.empty()) return;
    if (name == "local_rank") return remark(Remark::Kind::kNotNeeded, shown, "ranks know their number");
    if (const ForeignArgument* argument = foreign_argument(setting)) {
      return remark(argument->is_refused ? Remark::Kind::kLeftOut : Remark::Kind::kNotNeeded, shown, argument->reason);
    }
    const bool negates = setting.starts_with("no_") && !schema_.has(setting) && schema_.has(setting.substr(3));
    if (!negates && !schema_.has(setting)) {
      return remark(Remark::Kind::kLeftOut, shown, fmt::format("not a setting of {}", job_));
    }
    for (const ShellValue& value : values) {
      if (!value.is_known()) return remark(Remark::Kind::kComputed, shown, value.unknown);
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
        remark(Remark::Kind::kLeftOut, printable(values[i].text, 60), fmt::format("--{} takes one value", setting));
    }
    taken_.push_back(word);
  }

  const Schema& schema_;
  const LaunchLine& launch_;
  const std::string& job_;
  Remarks& remarks_;
  std::size_t at_ = 0;
  std::vector<std::string> taken_;
};

}  // namespace

std::vector<std::string> arguments_for(const Schema& schema, const LaunchLine& launch, const std::string& job,
                                       Remarks& remarks) {
  return ArgumentReader(schema, launch, job, remarks).read();
}

}  // namespace tessera

#include "experiment/import/imported_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "comm/world_settings.h"
#include "core/error.h"
#include "core/text.h"
#include "experiment/import/script_arguments.h"
#include "experiment/import/script_environment.h"
#include "experiment/import/typed_json.h"
#include "settings/declared.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

bool is_of_own_folder(const std::string& setting) {
  return setting == "output_dir" || setting == "log_dir" || setting == "logging_dir" || setting == "wandb_dir";
}

// Settings that name a file or folder, and those of them that may also name a model of the hub.
bool names_a_file(const std::string& setting) {
  static const std::set<std::string> all = {"train_file", "validation_file", "data_dir", "config_name"};
  return all.contains(setting);
}
bool may_name_a_file(const std::string& setting) {
  return names_a_file(setting) || setting == "model_name_or_path" || setting == "tokenizer_name";
}

class SettingsReader {
 public:
  SettingsReader(const ScriptFacts& script, const LaunchLine& launch, const JobTraits& job,
                 const AccelerateConfig& accelerate, Remarks& remarks)
      : script_(script),
        launch_(launch),
        job_(job),
        accelerate_(accelerate),
        remarks_(remarks),
        schema_("tessera train " + job.name, job.summary) {
    declare(schema_, job, declared_);
    declare(schema_, world_);
  }

  ImportedSettings read() {
    const std::vector<std::string> words = arguments_for(schema_, launch_, job_.name, remarks_);
    ScriptEnvironment environment = read_script_environment(script_, launch_, schema_.environment_names(), remarks_);
    made_.environment = std::move(environment.kept);
    Json weaker = Json::object();
    for (const auto& [name, given] : accelerate_.settings) weaker[name] = typed_json(given.text);
    try {
      schema_.read_command_line(words);
      schema_.read_json(weaker, "accelerate's configuration");
      schema_.read_env_file(environment.settings, script_.name);
    } catch (const Error& error) {
      throw error.in_context(launch_.place);
    }
    for (const Setting* setting : schema_.shown()) {
      if (setting->is_set()) take(*setting);
    }
    return std::move(made_);
  }

 private:
  void take(const Setting& setting) {
    const std::string& name = setting.name();
    const std::string place = place_of(setting);
    if (is_of_own_folder(name)) {
      made_.own_folder.set(name, setting.text(), place);
      remarks_.push_back(
          {Remark::Kind::kNotNeeded, place, written(setting), "every run of an experiment has a folder of its own"});
      return;
    }
    const std::string text = may_name_a_file(name) ? whole_path(setting, place) : setting.text();
    made_.settings.set(name, text, place);
    remarks_.push_back(
        {Remark::Kind::kTaken, place, written(setting), fmt::format("--{} {}", name, printable(text, 80))});
  }

  // "LR in train.sbatch" is where LR was set.
  std::string variable_of(const Setting& setting) const {
    return setting.source() == Source::kEnvFile ? setting.origin().substr(0, setting.origin().find(' ')) : "";
  }
  std::string place_of(const Setting& setting) const {
    if (setting.source() == Source::kJson) return accelerate_.settings.find(setting.name())->origin;
    const ShellVariables::Variable* variable = launch_.variables.find(variable_of(setting));
    return variable == nullptr ? launch_.place : variable->place;
  }
  std::string written(const Setting& setting) const {
    const std::string variable = variable_of(setting);
    return variable.empty() ? "--" + setting.name() : variable;
  }

  // Experiments run in a folder of their own, where the script's relative paths mean nothing.
  std::string whole_path(const Setting& setting, const std::string& place) {
    const std::string& text = setting.text();
    if (text.starts_with('/') || text.starts_with("catalogue:")) return text;
    const ShellVariables::Variable* here = launch_.variables.find("PWD");
    const fs::path path = (fs::path(here->values[0].text) / text).lexically_normal();
    std::error_code none;
    if (fs::exists(path, none)) return path.string();
    if (names_a_file(setting.name())) {
      remarks_.push_back(
          {Remark::Kind::kLeftOut, place, printable(text, 80),
           fmt::format("it is not beside the script; give --{} with a full path when you run the experiment",
                       setting.name())});
    }
    return text;
  }

  const ScriptFacts& script_;
  const LaunchLine& launch_;
  const JobTraits& job_;
  const AccelerateConfig& accelerate_;
  Remarks& remarks_;
  DeclaredSettings declared_;
  WorldSettings world_;
  Schema schema_;
  ImportedSettings made_;
};

}  // namespace

ImportedSettings imported_settings(const ScriptFacts& script, const LaunchLine& launch, const JobTraits& job,
                                   const AccelerateConfig& accelerate, Remarks& remarks) {
  return SettingsReader(script, launch, job, accelerate, remarks).read();
}

}  // namespace tessera

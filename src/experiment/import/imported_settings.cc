#include "experiment/import/imported_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "comm/world_settings.h"
#include "core/error.h"
#include "core/text.h"
#include "settings/foreign_config.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct NamedValue {
  std::string written;  // the name as the script has it
  std::string value;

  std::string shown() const { return fmt::format("{} is {}", written, printable(value, 60)); }
};

// Options and exported variables of the program, by lower-case name with underscores.
using NamedValues = std::map<std::string, NamedValue>;

NamedValues named_values(const LaunchLine& launch) {
  NamedValues found;
  for (const auto& [name, variable] : launch.variables.all()) {
    if (variable.is_exported && !variable.values.empty()) found[lower_case(name)] = {name, variable.values[0].text};
  }
  for (const auto& [name, value] : launch.command.variables) found[lower_case(name)] = {name, value.text};
  for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
    const std::string& word = launch.arguments[i].text;
    if (!word.starts_with("--")) continue;
    const std::size_t equals = word.find('=');
    const std::string next = i + 1 < launch.arguments.size() ? launch.arguments[i + 1].text : "";
    found[lower_case(option_name(word))] = {word.substr(0, equals),
                                            equals != std::string::npos ? word.substr(equals + 1) : next};
  }
  return found;
}

std::string reason_for_gpt(const NamedValues& values) {
  for (const char* name : {"vocab_size", "hidden_size", "num_layers", "ff_dim"}) {
    if (values.contains(name)) return values.at(name).shown() + ", a size of a model from scratch";
  }
  return "";
}

// By a word in the name of the model that a text job starts from.
std::string reason_for_text_model(const NamedValues& values, std::initializer_list<const char*> words) {
  for (const char* name : {"model_name_or_path", "model_name", "model", "model_id", "config_name"}) {
    const auto found = values.find(name);
    if (found == values.end()) continue;
    const std::string model = lower_case(found->second.value);
    const auto is_in_name = [&](const char* word) { return model.find(word) != std::string::npos; };
    if (std::ranges::any_of(words, is_in_name)) return found->second.shown();
  }
  return "";
}

std::string reason_for_resnet(const NamedValues& values, const LaunchLine& launch) {
  for (const char* word : {"resnet", "tinyimagenet", "tiny-imagenet", "tiny_imagenet"}) {
    if (lower_case(launch.program).find(word) != std::string::npos)
      return "the program is " + printable(launch.program, 60);
    for (const auto& [name, value] : values) {
      if (name != "output_dir" && name != "log_dir" && lower_case(value.value).find(word) != std::string::npos) {
        return value.shown();
      }
    }
  }
  return values.contains("data_dir") ? values.at("data_dir").shown() + ", a folder of images" : "";
}

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
  SettingsReader(const JobTraits& job, ScriptFacts& script)
      : job_(job), script_(script), launch_(script.launch), schema_("tessera train " + job.name, job.summary) {
    declare(schema_, job, declared_);
    declare(schema_, world_);
  }

  ImportedSettings read() {
    const std::vector<std::string> words = arguments_for(schema_, job_.name, script_);
    const Environment environment = read_script_environment(schema_.environment_names(), script_, made_.environment);
    Json weaker = Json::object();
    for (const auto& [name, given] : script_.accelerate.settings) weaker[name] = typed_json(given.text);
    try {
      schema_.read_command_line(words);
      schema_.read_json(weaker, "accelerate's configuration");
      schema_.read_env_file(environment, script_.name);
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
    script_.remarks.place = place;
    if (is_of_own_folder(name)) {
      made_.own_folder.set(name, setting.text(), place);
      return script_.remarks.add(Remark::Kind::kNotNeeded, written(setting),
                                 "every run of an experiment has a folder of its own");
    }
    const std::string text = may_name_a_file(name) ? whole_path(setting) : setting.text();
    made_.settings.set(name, text, place);
    script_.remarks.add(Remark::Kind::kTaken, written(setting), fmt::format("--{} {}", name, printable(text, 80)));
  }

  // "LR in train.sbatch" is where LR was set.
  std::string variable_of(const Setting& setting) const {
    return setting.source() == Source::kEnvFile ? setting.origin().substr(0, setting.origin().find(' ')) : "";
  }
  std::string place_of(const Setting& setting) const {
    if (setting.source() == Source::kJson) return script_.accelerate.settings.find(setting.name())->origin;
    const ShellVariables::Variable* variable = launch_.variables.find(variable_of(setting));
    return variable == nullptr ? launch_.place : variable->place;
  }
  std::string written(const Setting& setting) const {
    const std::string variable = variable_of(setting);
    return variable.empty() ? "--" + setting.name() : variable;
  }

  // Experiments run in a folder of their own, where the script's relative paths mean nothing.
  std::string whole_path(const Setting& setting) {
    const std::string& text = setting.text();
    if (text.starts_with('/') || text.starts_with("catalogue:")) return text;
    const ShellVariables::Variable* here = launch_.variables.find("PWD");
    const fs::path path = (fs::path(here->values[0].text) / text).lexically_normal();
    std::error_code none;
    if (fs::exists(path, none)) return path.string();
    if (names_a_file(setting.name())) {
      script_.remarks.add(
          Remark::Kind::kLeftOut, printable(text, 80),
          fmt::format("it is not beside the script; give --{} with a full path when you run the experiment",
                      setting.name()));
    }
    return text;
  }

  const JobTraits& job_;
  ScriptFacts& script_;
  const LaunchLine& launch_;
  DeclaredSettings declared_;
  WorldOptions world_;
  Schema schema_;
  ImportedSettings made_;
};

}  // namespace

std::pair<const JobTraits*, std::string> guess_job(const LaunchLine& launch, const std::vector<const JobTraits*>& jobs,
                                                   const std::string& wanted) {
  std::map<std::string, const JobTraits*> by_name;
  std::vector<std::string> all;
  for (const JobTraits* job : jobs) {
    by_name[job->name] = job;
    all.push_back(job->name);
  }
  if (by_name.contains(wanted)) return {by_name[wanted], "--job"};
  if (!wanted.empty()) {
    throw UsageError(fmt::format("--job {}: there is no such job; jobs: {}", printable(wanted, 40), join(all, ", ")));
  }
  const NamedValues values = named_values(launch);
  // Not "phi": Sophia and Phil have home folders.
  const auto of_families = {"llama", "qwen", "mistral", "gemma", "phi-", "phi3", "phi4", "olmo", "smollm", "gpt2"};
  std::map<std::string, std::string> reasons = {{"bloom-qa", reason_for_text_model(values, {"bloom"})},
                                                {"qa", reason_for_text_model(values, of_families)},
                                                {"resnet-tinyimagenet", reason_for_resnet(values, launch)},
                                                {"gpt-qa", reason_for_gpt(values)}};
  if (!reasons["gpt-qa"].empty()) {  // the named model then only lends its tokenizer
    reasons.erase("bloom-qa");
    reasons.erase("qa");
  }
  std::erase_if(reasons, [](const auto& reason) { return reason.second.empty(); });
  if (reasons.empty()) {
    throw UsageError(
        fmt::format("{}: nothing says what {} trains (no text model, no sizes of a GPT, no image data); "
                    "say it with --job: {}",
                    launch.place, printable(launch.program, 60), join(all, ", ")));
  }
  if (reasons.size() > 1) {
    std::vector<std::string> each;
    for (const auto& [job, reason] : reasons) each.push_back(fmt::format("{} ({})", job, reason));
    throw UsageError(fmt::format("{}: {} could be {}; say which with --job", launch.place,
                                 printable(launch.program, 60), join(each, " or ")));
  }
  const auto& [name, reason] = *reasons.begin();
  return {by_name.at(name), reason};
}

ImportedSettings imported_settings(const JobTraits& job, ScriptFacts& script) {
  return SettingsReader(job, script).read();
}

Json typed_json(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  Json number;
  if (const auto whole = parse_integer(text)) {
    number = *whole;
  } else if (const auto real = parse_real(text)) {
    number = *real;
  }
  // Only if it reads back as it was written.
  return !number.is_null() && text_of(number) == text ? number : Json(text);
}

}  // namespace tessera

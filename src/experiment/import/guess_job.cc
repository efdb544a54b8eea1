#include "experiment/import/guess_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/text.h"

namespace tessera {
namespace {

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
    const std::string written = word.substr(0, equals);
    std::string name = lower_case(written.substr(2));
    std::replace(name.begin(), name.end(), '-', '_');
    const std::string next = i + 1 < launch.arguments.size() ? launch.arguments[i + 1].text : "";
    found[name] = {written, equals != std::string::npos ? word.substr(equals + 1) : next};
  }
  return found;
}

std::string reason_for_gpt(const NamedValues& values) {
  for (const char* name : {"vocab_size", "hidden_size", "num_layers", "ff_dim"}) {
    if (values.contains(name)) return values.at(name).shown() + ", a size of a model from scratch";
  }
  return "";
}

std::string reason_for_bloom(const NamedValues& values) {
  for (const char* name : {"model_name_or_path", "model_name", "model", "model_id", "config_name"}) {
    const auto found = values.find(name);
    if (found != values.end() && lower_case(found->second.value).find("bloom") != std::string::npos) {
      return found->second.shown();
    }
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

}  // namespace

JobGuess guess_job(const LaunchLine& launch, const std::vector<const JobTraits*>& jobs, const std::string& wanted) {
  std::vector<std::string> all;
  for (const JobTraits* job : jobs) {
    if (job->name == wanted) return {job, "--job"};
    all.push_back(job->name);
  }
  if (!wanted.empty()) {
    throw UsageError(fmt::format("--job {}: there is no such job; jobs: {}", printable(wanted, 40), join(all, ", ")));
  }
  const NamedValues values = named_values(launch);
  std::map<std::string, std::string> reasons;
  if (const std::string reason = reason_for_bloom(values); !reason.empty()) reasons["bloom-qa"] = reason;
  if (const std::string reason = reason_for_resnet(values, launch); !reason.empty())
    reasons["resnet-tinyimagenet"] = reason;
  if (const std::string reason = reason_for_gpt(values); !reason.empty()) {
    reasons["gpt-qa"] = reason;
    reasons.erase("bloom-qa");  // the named model then only lends its tokenizer
  }
  if (reasons.empty()) {
    throw UsageError(
        fmt::format("{}: nothing says what {} trains (no BLOOM model, no sizes of a GPT, no image data); "
                    "say it with --job: {}",
                    launch.place, printable(launch.program, 60), join(all, ", ")));
  }
  if (reasons.size() > 1) {
    std::vector<std::string> each;
    for (const auto& [job, reason] : reasons) each.push_back(fmt::format("{} ({})", job, reason));
    throw UsageError(fmt::format("{}: {} could be {}; say which with --job", launch.place,
                                 printable(launch.program, 60), join(each, " or ")));
  }
  for (const JobTraits* job : jobs) {
    if (job->name == reasons.begin()->first) return {job, reasons.begin()->second};
  }
  throw Error("there is no job " + reasons.begin()->first);
}

}  // namespace tessera

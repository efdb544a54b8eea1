#include "experiment/resolved.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "comm/world_settings.h"
#include "core/error.h"
#include "core/json.h"
#include "core/text.h"

namespace tessera {
namespace {

constexpr std::string_view kReference = "catalogue:";

// Settings that say the same thing in two ways: who gives one takes the weaker's other away.
constexpr std::pair<const char*, const char*> kRivals[] = {
    {"fp16", "bf16"}, {"max_train_samples", "samples_per_rank"}, {"num_layers", "layers_per_rank"}};

// By the settings' own names, whichever of their names was given.
void overlay_settings(Values& values, const Values& stronger, const Schema& schema) {
  for (const auto& [written, given] : stronger) {
    const Setting* setting = schema.look_up(written);
    const std::string name = setting == nullptr ? written : setting->name();
    for (const auto& [one, other] : kRivals) {
      if (given.text == "false" || given.text == "0") continue;
      if (name == one) values.unset(other);
      if (name == other) values.unset(one);
    }
    values.set(name, given.text, given.origin);
  }
}

// Runs start in their own folder: a path that leads somewhere from here stays right.
std::string make_absolute(const std::string& path) {
  std::error_code none;
  if (path.empty() || !std::filesystem::exists(path, none)) return path;
  return std::filesystem::absolute(path).lexically_normal().string();
}

void make_paths_absolute(Values& settings) {
  const Values given = settings;
  for (const char* name : {"train_file", "validation_file", "data_dir", "model_name_or_path", "tokenizer_name",
                           "config_name", "deepspeed", "fsdp_config", "env_file"}) {
    if (const Given* value = given.find(name)) settings.set(name, make_absolute(value->text), value->origin);
  }
}

// They become words of a script.
void check_resources(const ResolvedExperiment& experiment) {
  for (const auto& [name, given] : experiment.resources) {
    const bool is_plain = given.text.find_first_not_of(
                              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              "_-./%:+,@=") == std::string::npos;
    if (!is_plain || given.text.empty()) {
      throw UsageError(fmt::format("{}: {} = '{}': expected a word without blanks, quotes or $", given.origin, name,
                                   printable(given.text, 60)));
    }
  }
  for (const auto& [name, given] : experiment.environment) {
    if (is_variable_name(name)) continue;
    throw UsageError(fmt::format("{}: '{}' is no name of a variable", given.origin, printable(name, 40)));
  }
}

// Files that settings name as catalogue:PATH come to lie in the run's folder.
void bring_files(ResolvedExperiment& experiment, const Catalogue& catalogue) {
  const Values settings = experiment.settings;
  for (const auto& [name, given] : settings) {
    if (!given.text.starts_with(kReference)) continue;
    const std::string path = given.text.substr(kReference.size());
    for (auto& [inner, content] : catalogue.files(path)) experiment.files[inner] = std::move(content);
    experiment.settings.set(name, path.substr(path.rfind('/') + 1), given.origin);
  }
}

void check_gate(const ResolvedExperiment& experiment) {
  const Given& enabled = *experiment.gate.find("enabled");
  if (enabled.text != "true" && enabled.text != "false") {
    throw UsageError(fmt::format("{}: gate: enabled = '{}': expected true or false", enabled.origin, enabled.text));
  }
  const Given& threshold = *experiment.gate.find("min_busbw");
  if (const auto number = parse_real(threshold.text); !number || *number < 0) {
    throw UsageError(
        fmt::format("{}: min_busbw = '{}': expected GB/s, such as 5", threshold.origin, printable(threshold.text, 40)));
  }
  if (experiment.has_gate() && experiment.num_ranks() == 1) {
    throw UsageError("the bandwidth gate needs at least two ranks; --gate off leaves it out");
  }
}

// As `tessera train` gets it on these ranks; data may be missing.
TrainRequest request_of(const ResolvedExperiment& experiment, const std::vector<const JobTraits*>& jobs) {
  TrainRequest request;
  request.jobs = jobs;
  request.num_ranks = experiment.num_ranks();
  request.needs_data = false;
  // The schema is bound to it: it lives as long as the request, which the result keeps.
  const auto world = std::make_shared<WorldOptions>();
  request.declare_more = [world](Schema& schema) { declare(schema, *world); };
  request.arguments = {experiment.job};
  for (const auto& [setting, given] : experiment.settings) {
    const auto file = experiment.files.find(given.text);
    request.arguments.push_back("--" + setting);
    request.arguments.push_back(file != experiment.files.end() && given.text.ends_with(".json") &&
                                        (setting == "deepspeed" || setting == "fsdp_config")
                                    ? file->second
                                    : given.text);
  }
  return request;
}

// --scale tiny: any experiment as one that any laptop runs in about a minute, for rehearsals and tests.
//
// CPU ranks instead of GPUs and a model of a few million parameters in float32 (half types are slow on CPUs); rows and
// layers are divided alike, batch and accumulation stay, so that the shape of a table is that of the real one. Data,
// tokenizer and pictures come from the catalogue's tiny/ folder.

constexpr const char* kTinyScale = "scale tiny";
constexpr double kRowDivisor = 10;
constexpr double kLayerDivisor = 3;

// A number that is given, divided; at least `least`.
void divide(Values& values, const std::string& name, double divisor, long long least) {
  const Given* given = values.find(name);
  const auto number = given == nullptr ? std::nullopt : parse_integer(given->text);
  if (number && *number > 0) {
    const long long divided = std::llround(static_cast<double>(*number) / divisor);
    values.set(name, std::to_string(std::max(least, divided)), kTinyScale);
  }
}

void put_all(Values& values, const std::vector<std::pair<std::string, std::string>>& all) {
  for (const auto& [name, text] : all) values.set(name, text, kTinyScale);
}

void shrink_text(Values& settings) {
  put_all(settings, {{"tokenizer_name", "catalogue:tiny/tokenizer"},
                     {"train_file", "catalogue:tiny/train-v1.1.json"},
                     {"validation_file", "catalogue:tiny/validation-v1.1.json"},
                     {"max_length", "128"}});
  for (const char* rows : {"max_train_samples", "samples_per_rank"}) divide(settings, rows, kRowDivisor, 1);
  divide(settings, "max_eval_samples", kRowDivisor, 5);
}

void shrink_gpt(Values& settings) {
  put_all(
      settings,
      {{"vocab_size", "2048"}, {"hidden_size", "128"}, {"num_heads", "4"}, {"ff_dim", "512"}, {"seq_length", "128"}});
  settings.unset("max_length");
  divide(settings, "num_layers", kLayerDivisor, 1);
}

// The settings; what the command line says comes after it.
void scale_to_tiny(ResolvedExperiment& experiment) {
  Values& settings = experiment.settings;
  for (const char* type : {"fp16", "bf16"}) settings.unset(type);
  put_all(settings, {{"device", "cpu"}, {"monitor_period", "1s"}});
  if (experiment.job == "resnet-tinyimagenet") {
    put_all(settings, {{"data_dir", "catalogue:tiny/pictures"}, {"image_size", "32"}, {"dataloader_num_workers", "0"}});
  } else {
    shrink_text(settings);
    if (experiment.job == "gpt-qa") {
      shrink_gpt(settings);
    } else {
      settings.unset("model_name_or_path");
      settings.set("config_name", "catalogue:tiny/bloom.json", kTinyScale);
    }
  }
  put_all(experiment.environment, {{"OMP_NUM_THREADS", "1"}});
  for (const char* name : {"NCCL_SOCKET_IFNAME", "NCCL_DEBUG"}) experiment.environment.unset(name);
  const int megabytes = std::max(1000, 450 * experiment.gpus_per_node());  // most of a rank's memory is libtorch's
  put_all(experiment.resources,
          {{"cpus_per_task", "1"}, {"memory", fmt::format("{}M", megabytes)}, {"time", "00:15:00"}});
  experiment.resources.unset("reserved_gpus_per_node");
  put_all(experiment.gate, {{"size", "1M"}, {"min_busbw", "0.001"}, {"iterations", "5"}, {"warmup_iterations", "1"}});
}

// The files that came with the settings: a ds_config that asks for half types leaves that open.
void scale_files_to_tiny(ResolvedExperiment& experiment) {
  const auto file = experiment.files.find(experiment.settings.text("deepspeed"));
  if (file == experiment.files.end()) return;
  Json config = parse_json(file->second, file->first);
  for (const char* section : {"fp16", "bf16"}) {  // slow on CPUs
    if (config.contains(section) && config[section].contains("enabled")) config[section]["enabled"] = "auto";
  }
  file->second = config.dump(2) + "\n";
}

}  // namespace

int ResolvedExperiment::reserved_gpus_per_node() const {
  const int used = gpus_per_node();
  return resources.has("reserved_gpus_per_node") ? std::max(used, resources.count("reserved_gpus_per_node", 1)) : used;
}

void ResolvedExperiment::check_can_start() const {
  if (!missing.empty()) throw UsageError(name + ": " + missing);
}

std::vector<std::string> ResolvedExperiment::gate_words() const {
  std::vector<std::string> words =
      split(fmt::format("comm-test -b {0} -e {0} -f 2 -g 1 -c 0 -n {1} -w {2}", gate.text("size"),
                        gate.text("iterations"), gate.text("warmup_iterations")),
            ' ');
  if (!on_gpus()) words.insert(words.end(), {"--device", "cpu"});
  words.insert(words.end(), {"--min-busbw", gate.text("min_busbw")});
  return words;
}

std::vector<std::string> ResolvedExperiment::train_words() const {
  std::vector<std::string> words = {job};
  for (const auto& [setting, given] : settings) {
    words.push_back("--" + setting);
    words.push_back(given.text);
  }
  return words;
}

LoadedTrainSettings loaded_settings(const ResolvedExperiment& experiment, const std::vector<const JobTraits*>& jobs) {
  return load_train_settings(request_of(experiment, jobs));
}

void look_for_data(ResolvedExperiment& experiment, const std::vector<const JobTraits*>& jobs,
                   const Environment& environment) {
  TrainRequest request = request_of(experiment, jobs);
  request.needs_data = true;
  request.environment = environment;
  for (const auto& [name, given] : experiment.environment) request.environment.set(name, given.text);
  try {
    const LoadedTrainSettings loaded = load_train_settings(request);
    experiment.notes = loaded.notes;
    for (const char* name : {"train_file", "validation_file", "data_dir"}) {
      if (experiment.settings.has(name) || !loaded.schema->has(name) || !loaded.schema->at(name).is_set()) continue;
      const Setting& found = loaded.schema->at(name);
      experiment.settings.set(name, make_absolute(found.text()), found.origin());
    }
  } catch (const UsageError& error) {
    experiment.notes = loaded_settings(experiment, jobs).notes;  // throws where data is not all that is wrong
    experiment.missing = error.what();
  }
}

ResolvedExperiment resolve(const ExperimentSpec& spec, const Catalogue& catalogue, const ResolveOptions& options) {
  ResolvedExperiment made{spec};
  made.preset = options.preset;
  made.scale = options.scale;
  DeclaredSettings declared;
  Schema schema("", "");
  for (const JobTraits* job : options.jobs) {
    if (job->name == spec.job) declare(schema, *job, declared);
  }
  overlay_settings(made.settings, options.site_settings, schema);
  made.environment.overlay(options.site_environment);
  if (options.scale == Scale::kTiny) scale_to_tiny(made);
  made.resources.overlay(options.resources);
  made.gate.overlay(options.gate);
  // The workshops' own: nccl-tests' arguments, and 5 GB/s.
  made.gate.complete(
      {{"enabled", "false"}, {"min_busbw", "5"}, {"size", "4G"}, {"iterations", "50"}, {"warmup_iterations", "20"}});
  overlay_settings(made.settings, options.settings, schema);
  if (const Given* output = options.settings.find("output_dir")) {
    throw UsageError(fmt::format("--output_dir={}: a run's output lies in its own folder; --runs says where that is",
                                 printable(output->text, 60)));
  }
  make_paths_absolute(made.settings);
  // Where every run folder has them (run_folder.h).
  if (!made.settings.has("output_dir")) made.settings.set("output_dir", "output", "its place in the run's folder");
  if (!made.settings.has("monitor")) made.settings.set("monitor", "true", "experiments are monitored");
  try {
    bring_files(made, catalogue);
    if (options.scale == Scale::kTiny) scale_files_to_tiny(made);
    check_resources(made);
    check_gate(made);
    look_for_data(made, options.jobs, options.environment);
  } catch (const Error& error) {
    throw error.in_context(made.name);
  }
  return made;
}

}  // namespace tessera

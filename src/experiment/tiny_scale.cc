#include "experiment/tiny_scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/json.h"
#include "core/text.h"

namespace tessera {
namespace {

constexpr const char* kOrigin = "scale tiny";
constexpr double kRowDivisor = 10;
constexpr double kLayerDivisor = 3;

void put(Values& values, const std::string& name, const std::string& text) {
  values.set(name, text, kOrigin);
}

// A number that is given, divided; at least `least`.
void divide(Values& values, const std::string& name, double divisor, long long least) {
  const Given* given = values.find(name);
  const auto number = given == nullptr ? std::nullopt : parse_integer(given->text);
  if (number && *number > 0) {
    put(values, name, std::to_string(std::max(least, std::llround(static_cast<double>(*number) / divisor))));
  }
}

void shrink_text(Values& settings) {
  put(settings, "tokenizer_name", "catalogue:tiny/tokenizer");
  put(settings, "train_file", "catalogue:tiny/train-v1.1.json");
  put(settings, "validation_file", "catalogue:tiny/validation-v1.1.json");
  for (const char* rows : {"max_train_samples", "samples_per_rank"}) divide(settings, rows, kRowDivisor, 1);
  divide(settings, "max_eval_samples", kRowDivisor, 5);
  put(settings, "max_length", "128");
}

void shrink_bloom(Values& settings) {
  settings.unset("model_name_or_path");
  put(settings, "config_name", "catalogue:tiny/bloom.json");
}

void shrink_gpt(Values& settings) {
  put(settings, "vocab_size", "2048");
  put(settings, "hidden_size", "128");
  put(settings, "num_heads", "4");
  put(settings, "ff_dim", "512");
  put(settings, "seq_length", "128");
  settings.unset("max_length");
  divide(settings, "num_layers", kLayerDivisor, 1);
}

void shrink_pictures(Values& settings) {
  put(settings, "data_dir", "catalogue:tiny/pictures");
  put(settings, "image_size", "32");
  put(settings, "dataloader_num_workers", "0");
}

// Half types are slow on CPUs: nobody asks for one then.
void leave_open(Json& config, const char* section) {
  if (config.contains(section) && config.at(section).is_object() && config.at(section).contains("enabled")) {
    config.at(section).at("enabled") = "auto";
  }
}

}  // namespace

void scale_to_tiny(ResolvedExperiment& experiment) {
  Values& settings = experiment.settings;
  for (const char* type : {"fp16", "bf16"}) settings.unset(type);
  put(settings, "device", "cpu");
  put(settings, "monitor_period", "1s");
  if (experiment.job == "resnet-tinyimagenet") {
    shrink_pictures(settings);
  } else {
    shrink_text(settings);
    experiment.job == "gpt-qa" ? shrink_gpt(settings) : shrink_bloom(settings);
  }
  put(experiment.environment, "OMP_NUM_THREADS", "1");
  for (const char* name : {"NCCL_SOCKET_IFNAME", "NCCL_DEBUG"}) experiment.environment.unset(name);
  Values& resources = experiment.resources;
  put(resources, "cpus_per_task", "1");
  // Most of a rank's memory is libtorch's.
  put(resources, "memory", fmt::format("{}M", std::max(1000, 450 * experiment.gpus_per_node())));
  put(resources, "time", "00:15:00");
  resources.unset("reserved_gpus_per_node");
  put(experiment.gate, "size", "1M");
  put(experiment.gate, "min_busbw", "0.001");
  put(experiment.gate, "iterations", "5");
  put(experiment.gate, "warmup_iterations", "1");
}

void scale_files_to_tiny(ResolvedExperiment& experiment) {
  const auto file = experiment.files.find(experiment.settings.text("deepspeed"));
  if (file == experiment.files.end()) return;
  Json config = parse_json(file->second, file->first);
  leave_open(config, "fp16");
  leave_open(config, "bf16");
  file->second = config.dump(2) + "\n";
}

}  // namespace tessera

// The configuration of `accelerate launch`: its YAML file and the options that override it. (no torch)
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/json.h"
#include "experiment/import/launch_line.h"
#include "experiment/values.h"

namespace tessera {

// "distributed_type", "fsdp_config.fsdp_sharding_strategy", ... -> value; keys that are null are left out.
using AccelerateKeys = std::map<std::string, std::string>;

// Reads what accelerate itself writes: keys with values, and one level of sections; a remark on the lines of lists and
// deeper sections. Throws UsageError for a text that is no YAML, and in a build without yaml-cpp.
AccelerateKeys read_accelerate_yaml(const std::string& text, const std::string& origin, Remarks& remarks);

// The launch line's options as such keys.
void add_accelerate_options(const LaunchLine& launch, AccelerateKeys& keys, Remarks& remarks);

struct AccelerateConfig {
  Values settings;               // of `tessera train`
  Json fsdp_config;              // for --fsdp_config; null: none
  std::string deepspeed_file;    // as the configuration names it; empty: none
  std::optional<int> processes;  // over all machines
  std::optional<int> machines;
};

// `remarks.place` is what remarks call the configuration.
AccelerateConfig interpret_accelerate(const AccelerateKeys& keys, Remarks& remarks);

}  // namespace tessera

// The configuration of `accelerate launch`: its YAML file and the options that override it. (no torch)
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/json.h"
#include "experiment/import/launch_line.h"
#include "experiment/import/remark.h"
#include "experiment/values.h"

namespace tessera {

// "distributed_type", "fsdp_config.fsdp_sharding_strategy", ... -> value; keys that are null are left out.
using AccelerateKeys = std::map<std::string, std::string>;

// Understands what accelerate itself writes: `key: value` lines and one level of indented sections. `not_understood`
// gets the numbers of other lines.
AccelerateKeys read_accelerate_yaml(std::string_view text, std::vector<std::size_t>& not_understood);

// The launch line's options as such keys.
void add_accelerate_options(const LaunchLine& launch, AccelerateKeys& keys, Remarks& remarks);

struct AccelerateConfig {
  Values settings;               // of `tessera train`
  Json fsdp_config;              // for --fsdp_config; null: none
  std::string deepspeed_file;    // as the configuration names it; empty: none
  std::optional<int> processes;  // over all machines
  std::optional<int> machines;
};

// `place` is what remarks call the configuration.
AccelerateConfig interpret_accelerate(const AccelerateKeys& keys, const std::string& place, Remarks& remarks);

}  // namespace tessera

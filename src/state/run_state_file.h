// A run's state as a checkpoint's trainer_state.json.
//
// The file has transformers' format, which its Trainer reads; everything else is under stateful_callbacks/Tessera.
#pragma once

#include <filesystem>
#include <string>

#include "core/json.h"
#include "train/run_state.h"

namespace tessera {

Json to_json(const RunState& state);
// Also reads files that transformers wrote. Throws UsageError naming `origin` and the key.
RunState run_state_of(const Json& json, const std::string& origin);

void write_run_state(const std::filesystem::path& file, const RunState& state);
RunState read_run_state(const std::filesystem::path& file);

}  // namespace tessera

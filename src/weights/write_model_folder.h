// A model folder that transformers loads.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "weights/write_weights.h"
#include "core/json.h"

namespace torch::nn {
class Module;
}

namespace tessera {

struct ModelFolderOptions {
  WriteOptions weights{};
  std::optional<Json> generation_config{};  // nothing: made of config's token ids, for models that generate
  std::vector<std::filesystem::path> tokenizer_files{};  // copied through
};

// The parameters and buffers of `module` under their names, parameters first. A tensor under several names stands there
// under each, and is written once.
std::vector<NamedTensor> tensors_of(const torch::nn::Module& module);

// Writes config.json (with torch_dtype set to what the weights have), the weights, generation_config.json and the
// tokenizer's files. All of it is written beside and flushed first. A folder that does not exist yet then appears by
// one rename: whole or not at all. In one that exists the files are put in place one after another, config.json last,
// and weights of other names that transformers would take instead are removed; what else lies there stays.
void write_model_folder(const std::filesystem::path& folder, const Json& config,
                        const std::vector<NamedTensor>& tensors, const ModelFolderOptions& options = {});

}  // namespace tessera

// Writes a model folder that transformers loads.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "weights/write_weights.h"

namespace torch::nn {
class Module;
}

namespace tessera {

struct ModelFolderOptions {
  WriteOptions weights{};
  std::optional<Json> generation_config{};  // nothing: made from config's token ids, for models that generate
  std::vector<std::filesystem::path> tokenizer_files{};  // copied through
};

// The parameters and buffers of `module` under their names, parameters first. A tensor with several names is listed
// under each, and written once.
std::vector<NamedTensor> tensors_of(const torch::nn::Module& module);

// Writes config.json (with torch_dtype set to the weights' type), the weights, generation_config.json and the
// tokenizer's files. Everything is first written to a staging folder and flushed. A new folder then appears with one
// rename: complete or not at all. In an existing folder the files are put in place one after another, config.json last,
// and weights of other names that transformers would use instead are removed; all other files stay.
void write_model_folder(const std::filesystem::path& folder, const Json& config,
                        const std::vector<NamedTensor>& tensors, const ModelFolderOptions& options = {});

}  // namespace tessera

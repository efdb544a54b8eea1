// Writes weight files (safetensors or torch.save's format, one file or shards with an index), and model folders that
// transformers loads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "weights/weights.h"

namespace tessera {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;  // on any device, with any strides
};

struct WriteOptions {
  WeightFormat format = WeightFormat::kSafetensors;
  std::optional<WeightType> dtype{};  // for floating-point tensors; nothing: unchanged
  std::int64_t max_shard_bytes = 5'000'000'000;
};

// One file, written atomically. Tensors that share memory (tied weights) are written once: safetensors then holds the
// first name, and the others as metadata; a torch file holds all names with one storage. Memory: one tensor at a time.
void write_weights_file(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                        const WriteOptions& options);

struct ModelFolderOptions {
  WriteOptions weights{};
  std::optional<Json> generation_config{};  // nothing: made from config's token ids, for models that generate
  std::vector<std::filesystem::path> tokenizer_files{};  // copied through
};

// Writes config.json (with torch_dtype set to the weights' type), generation_config.json, the tokenizer's files and the
// weights: model.safetensors or pytorch_model.bin, or shards (model-00001-of-00003.safetensors...) and their index if
// the tensors take more than max_shard_bytes. Everything is first written to a staging folder and flushed. A new folder
// then appears with one rename: complete or not at all. In an existing folder the files are put in place one after
// another, config.json last, and weights of other names that transformers would use instead are removed; all other
// files stay.
void write_model_folder(const std::filesystem::path& folder, const Json& config,
                        const std::vector<NamedTensor>& tensors, const ModelFolderOptions& options = {});

}  // namespace tessera

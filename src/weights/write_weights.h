// Writes tensors to weight files: safetensors or torch.save's format, one file or shards with an index.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

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

// model.safetensors or pytorch_model.bin in `folder`, or shards (model-00001-of-00003.safetensors...) and their index
// if the tensors take more than max_shard_bytes. Returns the names of the files written. Each file appears complete;
// replacing an old set of files is up to the caller.
std::vector<std::string> write_weights(const std::filesystem::path& folder, const std::vector<NamedTensor>& tensors,
                                       const WriteOptions& options);

}  // namespace tessera

// Weights of a Sharded (tessera/shard.h) to a file and back, under the names that the model gives its parameters.
//
// The file is safetensors: any program that reads that format reads it, whatever strategy and number of ranks wrote it.
// Parameters are written as float32, buffers (batch-norm statistics) as they are, a parameter with several names once.
// The optimizer's state is not saved yet: a resumed run begins with fresh moments.
//
// The functions that take a Sharded are collective, between steps (not inside forward, not between backward and step).
// Only rank 0 touches the file; where it fails, every rank throws the same error, and the Sharded can still be used.
// Memory beyond what the strategy holds: one unit in float32 at a time.
#pragma once

#include <filesystem>

#include "tessera/shard.h"

namespace tessera {

// The file appears whole, when the function returns, or not at all.
void save_weights(Sharded& sharded, const std::filesystem::path& file);

// A file that save_weights wrote, or any safetensors or torch.save file, or model folder, with exactly the model's
// names and shapes; other types are converted. An error names every tensor that does not fit, and nothing is changed.
void load_weights(Sharded& sharded, const std::filesystem::path& file);

// Before sharding: into the module. On rank 0 alone is enough, since Sharded begins with rank 0's values.
void load_weights(torch::nn::Module& module, const std::filesystem::path& file);

}  // namespace tessera

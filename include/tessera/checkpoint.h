// Weights and optimizer state of a Sharded (tessera/shard.h) to files and back, under the names of the model.
//
// Files are safetensors: any program that reads that format reads them, whatever strategy and number of ranks wrote
// them. Parameters are written as float32, buffers (batch-norm statistics) as they are, a parameter with several names
// once. A run goes on as if it had not stopped from both files, under any strategy: bit for bit on as many CPU ranks.
// What is the program's own (the place in the data, the learning rate) is not in them.
//
// The functions that take a Sharded or an Optimizer are collective, between steps (not inside forward, not between
// backward and step). Only rank 0 touches the file; where it fails, every rank throws the same error, and the Sharded
// can still be used. Memory beyond what the strategy holds: one unit in float32 at a time, for a
// moment two.
#pragma once

#include <filesystem>

#include "tessera/optimizer.h"
#include "tessera/shard.h"

namespace tessera {

// The file appears whole, when the function returns, or not at all.
void save_weights(Sharded& sharded, const std::filesystem::path& file);

// A file that save_weights wrote, or any safetensors or torch.save file, or model folder, with exactly the model's
// names and shapes; other types are converted. An error names every tensor that does not fit, and nothing is changed.
void load_weights(Sharded& sharded, const std::filesystem::path& file);

// Before sharding: into the module. On rank 0 alone is enough, since Sharded begins with rank 0's values.
void load_weights(torch::nn::Module& module, const std::filesystem::path& file);

// The optimizer's moments, under torch's names (exp_avg.<parameter>, exp_avg_sq., momentum_buffer.), its number of
// updates and the loss scale.
void save_optimizer(Optimizer& optimizer, const std::filesystem::path& file);
// Into an optimizer of the same kind, over the same model.
void load_optimizer(Optimizer& optimizer, const std::filesystem::path& file);

}  // namespace tessera

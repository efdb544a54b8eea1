// Saves and loads the weights and the optimizer state of a Sharded (tessera/shard.h), under the model's own names.
//
// Files are safetensors: any program that reads that format reads them, whatever strategy and number of ranks wrote
// them. Parameters are written as float32, buffers (batch-norm statistics) as they are, and a parameter with several
// names once. From both files a run resumes as if it had never stopped, under any strategy: bit for bit on the same
// number of CPU ranks. The program's own state (the position in the data, the learning rate) is not in them.
//
// The functions that take a Sharded or an Optimizer are collective. Call them between steps (not inside forward, not
// between backward and step). Only rank 0 touches the file; if that fails, every rank throws the same error, and the
// Sharded can still be used. Extra memory: one unit in float32 at a time, briefly two.
#pragma once

#include <filesystem>

#include "tessera/optimizer.h"
#include "tessera/shard.h"

namespace tessera {

// The file appears complete when the function returns, or not at all.
void save_weights(Sharded& sharded, const std::filesystem::path& file);

// Reads a file that save_weights wrote, or any safetensors or torch.save file or model folder with exactly the model's
// names and shapes; other types are converted. An error names the tensors that do not fit (eight of them, and how
// many more) and changes nothing.
void load_weights(Sharded& sharded, const std::filesystem::path& file);

// Before sharding: into the module. Loading on rank 0 is enough, since Sharded starts with rank 0's values.
void load_weights(torch::nn::Module& module, const std::filesystem::path& file);

// The optimizer's moments, under torch's names (exp_avg.<parameter>, exp_avg_sq., momentum_buffer.), its number of
// updates and the loss scale.
void save_optimizer(Optimizer& optimizer, const std::filesystem::path& file);
// The optimizer must be of the same kind, for the same model.
void load_optimizer(Optimizer& optimizer, const std::filesystem::path& file);

}  // namespace tessera

// The weight file of a spread model: parameters, unit by unit, and buffers.
//
// Collective, between steps. Only rank 0 touches the file; if that fails, every rank throws the same error.
#pragma once

#include <filesystem>

#include "state/unit_file.h"

namespace tessera {

struct NamedBuffer {
  StateTensor description;
  at::Tensor tensor;
};
// The model's buffers, each once; larger elements first, so that each tensor of a file is aligned to its element size.
std::vector<NamedBuffer> buffers_of(const torch::nn::Module& model);

// Writes rank 0's buffers: make them the same on all ranks first. The file appears complete.
void write_weights_file(const SpreadModel& spread, const std::filesystem::path& file);

// Every rank gets the file's values. Throws UsageError naming all tensors that do not fit, before changing any.
void read_weights_file(const SpreadModel& spread, const std::filesystem::path& file);

}  // namespace tessera

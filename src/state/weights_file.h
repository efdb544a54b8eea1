// The weight file of a spread model: parameters, unit by unit, and buffers.
//
// Collective, between steps. Only rank 0 touches the file; if that fails, every rank throws the same error.
#pragma once

#include <filesystem>

#include "state/unit_file.h"

namespace tessera {

// Writes rank 0's buffers: make them the same on all ranks first. The file appears complete.
void write_weights_file(const SpreadModel& spread, const std::filesystem::path& file);

// Every rank gets the file's values. Throws UsageError naming all tensors that do not fit, before changing any.
void read_weights_file(const SpreadModel& spread, const std::filesystem::path& file);

}  // namespace tessera

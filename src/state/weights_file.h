// A spread model's file of weights: parameters, unit by unit, and buffers.
//
// Collective, between steps. Only rank 0 touches the file; where it fails, every rank throws the same error.
#pragma once

#include <filesystem>

#include "state/unit_file.h"

namespace tessera {

// The buffers are rank 0's: make them alike before. The file appears whole.
void write_weights_file(const SpreadModel& spread, const std::filesystem::path& file);

// Every rank gets the file's. Throws UsageError naming all tensors that do not fit, before any is changed.
void read_weights_file(const SpreadModel& spread, const std::filesystem::path& file);

}  // namespace tessera

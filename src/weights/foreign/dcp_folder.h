// Folders of torch.distributed.checkpoint: .metadata says which bytes of which .distcp file hold which part of which
// tensor. accelerate writes two of them for a model under FSDP, pytorch_model_fsdp_0 and optimizer_0.
#pragma once

#include <filesystem>

#include "weights/foreign/foreign_checkpoint.h"

namespace tessera {

bool is_dcp_folder(const std::filesystem::path& folder);
ForeignCheckpoint open_dcp_folder(const std::filesystem::path& folder);

bool is_accelerate_folder(const std::filesystem::path& folder);
ForeignCheckpoint open_accelerate_folder(const std::filesystem::path& folder);

}  // namespace tessera

// DeepSpeed's checkpoints under ZeRO 1, 2 and 3: `latest` names a folder in which every rank has a file with its
// partition of the float32 parameters and of the optimizer's states. A partition is flat: pieces of parameters, one
// after another.
#pragma once

#include <filesystem>

#include "weights/foreign/foreign_checkpoint.h"

namespace tessera {

bool is_deepspeed_folder(const std::filesystem::path& folder);  // with `latest`, or the one that it names
ForeignCheckpoint open_deepspeed_folder(const std::filesystem::path& folder);

}  // namespace tessera

// PyTorch's FSDP as users of the Hugging Face Trainer ask for it: the words of --fsdp and the file of --fsdp_config.
#pragma once

#include <string>
#include <vector>

#include "settings/foreign_config.h"

namespace tessera {

// "full_shard auto_wrap offload": a strategy and its options. Empty text gives nothing. Throws UsageError.
ForeignConfig read_fsdp_words(const std::string& words);

// The file: keys with or without the prefix "fsdp_". Throws UsageError.
ForeignConfig read_fsdp_config(const std::string& origin, const std::string& text);

const std::vector<KeyRule>& fsdp_config_rules();

}  // namespace tessera

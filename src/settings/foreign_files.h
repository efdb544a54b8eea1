// --deepspeed, --fsdp and --fsdp_config: settings that users have for other programs. (no torch)
#pragma once

#include <string>
#include <vector>

#include "config/schema.h"

namespace tessera {

struct ForeignFiles {
  std::string deepspeed, fsdp, fsdp_config;
};

void declare(Schema& schema, ForeignFiles& files, const std::string& group);

// Gives the schema the values that it has settings for; notes say what was overruled and what has no effect. Call after
// the other sources are read. Throws UsageError.
void read_foreign_files(const ForeignFiles& files, Schema& schema, std::vector<std::string>& notes);

}  // namespace tessera

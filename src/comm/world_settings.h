// The settings of every command that runs on ranks.
#pragma once

#include <string>

#include "config/schema.h"
#include "tessera/world.h"

namespace tessera {

struct WorldSettings {
  WorldOptions options;
  std::string log_ranks;
};

void declare(Schema& schema, WorldSettings& settings);

// The options of the requested world; every setting of `schema` must be the same on all ranks. Call it after all
// sources were read.
WorldOptions options_of(const WorldSettings& settings, const Schema& schema);

}  // namespace tessera

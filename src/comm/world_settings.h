// The settings of every command that runs on ranks.
#pragma once

#include "config/schema.h"
#include "tessera/world.h"

namespace tessera {

void declare(Schema& schema, WorldOptions& options);

// The options with which every setting of `schema` must be the same on all ranks. Call it after all sources were read.
WorldOptions options_of(WorldOptions options, const Schema& schema);

}  // namespace tessera

// --scale tiny: any experiment as one that any laptop runs in about a minute, for rehearsals and tests. (no torch)
//
// CPU ranks instead of GPUs and a model of a few million parameters in float32 (half types are slow on CPUs); rows and
// layers are divided alike, batch and accumulation stay, so that the shape of a table is that of the real one. Data,
// tokenizer and pictures come from the catalogue's tiny/ folder.
#pragma once

#include "experiment/resolved.h"

namespace tessera {

// The settings; what the command line says comes after it.
void scale_to_tiny(ResolvedExperiment& experiment);
// The files that came with the settings: a ds_config that asks for half types leaves that open.
void scale_files_to_tiny(ResolvedExperiment& experiment);

}  // namespace tessera

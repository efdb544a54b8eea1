// What a monitored run says about its memory logs: where they are, and at the end what is in them.
#pragma once

#include <string>

#include "monitor/memory_sampler.h"

namespace tessera {

// "job 4711: memory logs in ./cpu_memory/4711 and ./gpu_memory/4711"
std::string places_text(const MemorySampler& sampler);

// What `tessera analyze-memory` prints for the job, and what sampling cost. Call it after stop().
std::string sampled_text(const MemorySampler& sampler);

}  // namespace tessera

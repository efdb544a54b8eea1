// The model's own answers, for the commands that ask for exact match and F1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "jobs/qa_files.h"
#include "parallel/engine.h"
#include "tessera/world.h"

namespace tessera {

// Rank 0 logs how a model that is sharded between uses is held while it generates. Collective.
void announce_generation(World& world, Engine& engine);

// One answer per prompt, the same on every rank. The batches are as large as the rank's memory allows. Collective.
std::vector<std::string> qa_answers(World& world, Engine& engine, const QaModel& model,
                                    const std::vector<QaPrompt>& prompts, std::int64_t max_new_tokens);

}  // namespace tessera

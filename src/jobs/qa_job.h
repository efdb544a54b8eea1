// What the question-answering jobs share: settings, data, the run itself. Their own files provide the model.
#pragma once

#include "jobs/jobs.h"
#include "jobs/qa_files.h"

namespace tessera {

// Without name, summary, model and the presets that differ.
JobTraits qa_traits();
// Throws UsageError if a file that all of them need is missing.
void check_qa_files(const TrainSettings& settings);

std::unique_ptr<OpenJob> open_qa_job(World& world, const LoadedTrainSettings& run, QaModel model,
                                     const std::optional<std::filesystem::path>& checkpoint);

}  // namespace tessera

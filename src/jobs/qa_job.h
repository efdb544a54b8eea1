// What the question-answering jobs share: settings, data, the run itself. Their own files provide the model.
#pragma once

#include "jobs/jobs.h"
#include "jobs/qa_files.h"

namespace tessera {

// Without name, summary, model and the presets that differ.
JobTraits qa_traits();
// Their JobTraits::resolve: looks for SQuAD if no file is given. Throws UsageError if it is not found.
void resolve_qa_files(Schema& schema, DeclaredSettings& s, const Resolution& how, std::vector<std::string>& notes);

// Their Job::open; `config`: see open_qa_model.
std::unique_ptr<OpenJob> open_qa_job(World& world, const LoadedTrainSettings& run,
                                     const std::optional<std::filesystem::path>& checkpoint,
                                     ScratchConfig config = nullptr);

}  // namespace tessera

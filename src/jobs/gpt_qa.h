// gpt-qa: train a GPT-like model from scratch on SQuAD's questions and answers.
#pragma once

#include "jobs/jobs.h"

namespace tessera {

const JobTraits& gpt_qa_traits();
std::unique_ptr<OpenJob> open_gpt_qa(World& world, const LoadedTrainSettings& run,
                                     const std::optional<std::filesystem::path>& checkpoint);

}  // namespace tessera

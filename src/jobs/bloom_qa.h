// bloom-qa: fine-tune BLOOM on SQuAD's questions and answers.
#pragma once

#include "jobs/jobs.h"

namespace tessera {

const JobTraits& bloom_qa_traits();
std::unique_ptr<OpenJob> open_bloom_qa(World& world, const LoadedTrainSettings& run,
                                       const std::optional<std::filesystem::path>& checkpoint);

}  // namespace tessera

// Which of the jobs a script trains. (no torch)
#pragma once

#include <string>
#include <vector>

#include "experiment/import/launch_line.h"
#include "settings/job_traits.h"

namespace tessera {

struct JobGuess {
  const JobTraits* job = nullptr;
  std::string reason;  // "MODEL_NAME is bigscience/bloom-560m"
};

// By the model's name, the sizes of a model from scratch, or image data. `wanted` (of --job) decides if it is not
// empty. Throws UsageError if the script points to no job or to several.
JobGuess guess_job(const LaunchLine& launch, const std::vector<const JobTraits*>& jobs, const std::string& wanted);

}  // namespace tessera

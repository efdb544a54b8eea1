#include "jobs/jobs.h"

#include "core/error.h"
#include "jobs/bloom_qa.h"
#include "jobs/gpt_qa.h"
#include "jobs/resnet_tinyimagenet.h"

namespace tessera {

const std::vector<Job>& jobs() {
  static const std::vector<Job> all = {
      {bloom_qa_traits(), open_bloom_qa},
      {gpt_qa_traits(), open_gpt_qa},
      {resnet_tinyimagenet_traits(), open_resnet_tinyimagenet},
  };
  return all;
}

const Job& job_of(std::string_view name) {
  for (const Job& job : jobs()) {
    if (job.traits.name == name) return job;
  }
  throw Error("there is no job " + std::string(name));
}

std::vector<const JobTraits*> job_traits() {
  std::vector<const JobTraits*> traits;
  for (const Job& job : jobs()) traits.push_back(&job.traits);
  return traits;
}

}  // namespace tessera

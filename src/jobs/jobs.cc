#include "jobs/jobs.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace tessera {

const std::vector<Job>& jobs() {
  static const std::vector<Job> all = {bloom_qa(), gpt_qa(), resnet_tinyimagenet()};
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

std::int64_t num_parameters(const torch::nn::Module& model) {
  std::int64_t numel = 0;
  for (const at::Tensor& parameter : model.parameters()) numel += parameter.numel();
  return numel;
}

PrefetchOptions loader_options(const DataSettings& data, at::Device device, std::int64_t batch_bytes) {
  const auto of_workers = [&](std::int64_t num_workers, std::int64_t most_ahead) -> PrefetchOptions {
    const std::int64_t ahead = std::min(num_workers * data.prefetch_factor, most_ahead);
    return {.num_workers = static_cast<int>(num_workers), .num_ahead = std::max<std::int64_t>(1, ahead)};
  };
  constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
  if (data.num_workers >= 0) return of_workers(data.num_workers, kNoLimit);
  if (device.is_cpu()) return of_workers(0, kNoLimit);
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 30, kFewestAhead = 2, kMostWorkers = 16;
  const std::int64_t most_ahead = std::max(kFewestAhead, kMostBytes / std::max<std::int64_t>(1, batch_bytes));
  return of_workers(std::min({std::int64_t{at::get_num_threads()}, most_ahead, kMostWorkers}), most_ahead);
}

}  // namespace tessera

#include "cli/train.h"

#include <memory>

#include "cli/build_commit.h"
#include "cli/sampled_run.h"
#include "comm/rank_env.h"
#include "comm/world_settings.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/freed_memory.h"
#include "core/output.h"
#include "core/standard_streams.h"
#include "jobs/jobs.h"
#include "jobs/run_job.h"
#include "monitor/sampled_text.h"
#include "results/runs_page.h"

namespace tessera {

int run_train(const std::vector<std::string>& args) {
  const Environment environment = Environment::of_process();
  WorldSettings world_settings;
  const RankEnv self = discover_rank(environment);
  LoadedTrainSettings run =
      load_train_settings({.jobs = job_traits(),
                           .arguments = args,
                           .environment = environment,
                           .num_ranks = self.world_size,
                           .declare_more = [&](Schema& schema) { declare(schema, world_settings); },
                           .commit = build_commit()});
  if (run.is_done) return 0;
  survive_closed_pipes();
  WorldOptions options = options_of(world_settings, *run.schema);
  if (run.settings.use_cpu) {
    if (options.device == "cuda") throw UsageError("--use_cpu and --device cuda exclude each other; give one");
    options.device = "cpu";
  }
  const std::unique_ptr<MemorySampler> sampler = start_sampler_of_rank(run.settings, self, environment);
  const int status = run_rank(options, [&run](World& world) {
    if (world.device().is_cpu()) keep_freed_memory();
    return run_job(world, run, page_of_run);
  });
  if (sampler) sampler->stop();
  if (sampler && self.rank == 0) print_out(sampled_text(*sampler));
  return status;
}

}  // namespace tessera

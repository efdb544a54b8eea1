#include "cli/train.h"

#include "report/rank_log.h"
#include "jobs/train_images.h"
#include "jobs/train_qa.h"
#include "report/train_reports.h"
#include "comm/world_settings.h"
#include "comm/rank_env.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/freed_memory.h"
#include "core/log.h"
#include "train/numerics.h"

namespace tessera {
namespace {

void note_offload(const SpreadSettings& spread, at::Device device) {
  if (!device.is_cpu() || !(spread.offload_optimizer || spread.offload_param)) return;
  log_info("offload {} nothing here: a CPU's memory is the host's",
           spread.delayed_update ? "and --delayed_update change" : "changes");
}

int train(World& world, const TrainRun& run) {
  if (world.rank() == 0) {
    for (const std::string& note : run.loaded.notes) log_info("{}", note);
    note_offload(run.settings().spread, world.device());
  }
  open_rank_log(run, world);
  for (const std::string& note : set_numerics(run.settings(), world.device())) log_info("{}", note);
  return run.settings().job == Job::kResnetTinyimagenet ? train_images(world, run) : train_qa(world, run);
}

void choose_cpu(const LoadedTrainSettings& loaded, WorldOptions& options) {
  if (!loaded.settings.spread.use_cpu) return;
  if (options.device == "cuda") throw UsageError("--use_cpu and --device cuda exclude each other; give one");
  options.device = "cpu";
}

}  // namespace

int run_train(const std::vector<std::string>& args) {
  const Environment environment = Environment::of_process();
  WorldSettings world_settings;
  const LoadedTrainSettings loaded =
      load_train_settings({.arguments = args,
                           .environment = environment,
                           .num_ranks = discover_rank(environment).world_size,
                           .declare_more = [&](Schema& schema) { declare(schema, world_settings); }});
  if (loaded.is_done) return 0;
  WorldOptions options = options_of(world_settings, *loaded.schema);
  choose_cpu(loaded, options);
  const TrainRun run{loaded, args, environment};
  return run_rank(options, [&run](World& world) {
    if (world.device().is_cpu()) keep_freed_memory();
    return train(world, run);
  });
}

}  // namespace tessera

#include "cli/launch.h"

#include <filesystem>
#include <memory>

#include "cli/sampled_run.h"
#include "core/environment.h"
#include "core/output.h"
#include "core/standard_streams.h"
#include "launch/host_resources.h"
#include "launch/settings.h"
#include "monitor/memory_sampler.h"

namespace tessera {

int run_launch(const std::vector<std::string>& args, const std::vector<std::string>& subcommands) {
  LaunchSettings settings;
  Schema schema("tessera launch", "start ranks, watch them, and end all when one fails");
  declare(schema, settings);
  if (!schema.read_command_line(args)) return 0;
  if (const auto plain = with_plain_tee(args, settings)) return run_launch(*plain, subcommands);
  Environment environment = Environment::of_process();
  // A single node has rank 0, whatever an outer job calls it.
  if (settings.nnodes != "1" && settings.nnodes != "1:1") schema.read_environment(environment);
  if (schema.wants_print_config()) {
    print_out(schema.config_text());
    return 0;
  }
  survive_closed_pipes();
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const HostFacts host = examine_host(environment);
  LaunchPlan plan = make_plan(settings, host, environment, self, subcommands);
  if (!schema.at("nproc_per_node").is_set()) {
    if (const std::string remark = remark_on_count(plan, host); !remark.empty()) plan.remarks.push_back(remark);
  }
  const std::unique_ptr<MemorySampler> sampler = start_sampler_of_launcher(plan, self, environment);
  const int status = run_launcher(plan, host, environment, self);
  if (sampler) sampler->stop();
  if (sampler && plan.node_rank == 0) print_out(sampled_text(*sampler));
  return status;
}

}  // namespace tessera

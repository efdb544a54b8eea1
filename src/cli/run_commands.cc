// What starts a run: `tessera train` is one of its ranks, `tessera launch` starts them, `tessera demo` is a run for a
// first look.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/experiment_command.h"
#include "comm/mpi_support.h"
#include "comm/rank_env.h"
#include "comm/world_settings.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/file.h"
#include "core/host.h"
#include "core/output.h"
#include "core/text.h"
#include "jobs/jobs.h"
#include "jobs/sampled_run.h"
#include "launch/host_resources.h"
#include "launch/rank_runner.h"
#include "launch/settings.h"
#include "monitor/memory_sampler.h"
#include "results/runs_page.h"
#include "settings/declared.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAboutLaunch = "start ranks, watch them, and end all when one fails";

int run_launch(const std::vector<std::string>& args) {
  LaunchSettings settings;
  Schema schema("tessera launch", kAboutLaunch);
  declare(schema, settings);
  if (!schema.read_command_line(args)) return 0;
  if (const auto plain = with_plain_tee(args, settings)) return run_launch(*plain);
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
  std::vector<std::string> subcommands = command_names();  // may be started by their bare names
  std::erase(subcommands, "launch");
  LaunchPlan plan = make_plan(settings, host, environment, self, subcommands);
  if (!schema.at("nproc_per_node").is_set()) {
    if (const std::string remark = remark_on_count(plan, host); !remark.empty()) plan.remarks.push_back(remark);
  }
  const std::unique_ptr<MemorySampler> sampler =
      start_sampler_of_launcher({plan.command, plan.num_nodes, plan.num_local_ranks, plan.run_id}, self, environment);
  const int status = run_launcher(plan, host, environment, self);
  if (sampler) sampler->stop();
  if (sampler && plan.node_rank == 0) print_out(sampled_text(*sampler));
  return status;
}

int run_train(const std::vector<std::string>& args) {
  const Environment environment = Environment::of_process();
  WorldOptions given;
  const RankEnv self = discover_rank(environment);
  LoadedTrainSettings run = load_train_settings({.jobs = job_traits(),
                                                 .arguments = args,
                                                 .environment = environment,
                                                 .num_ranks = self.world_size,
                                                 .declare_more = [&](Schema& schema) { declare(schema, given); },
                                                 .commit = build_commit()});
  if (run.is_done) return 0;
  survive_closed_pipes();
  WorldOptions options = options_of(given, *run.schema);
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

struct DemoSettings {
  std::vector<std::string> words;
  int epochs = 0;
};

// The script and its data lie where they lie relative to the program: an installation may be moved.
fs::path demo_script(const fs::path& program) {
  const fs::path script = program.parent_path().parent_path() / "share/tessera/demo/demo.sh";
  if (!is_there(script)) {
    throw Error(fmt::format("{} is missing: the demo is not installed with {}", script.string(), program.string()));
  }
  return script;
}

void declare(Schema& schema, DemoSettings& s) {
  schema.positionals("[FOLDER]: for what it leaves, else tessera-demo", &s.words);
  schema.integer("epochs", &s.epochs, "epochs; default: enough to memorise the questions", {.at_least = 1});
}

int run_demo(Schema&, DemoSettings& s) {
  if (s.words.size() > 1) throw UsageError("expected: tessera demo [FOLDER]");
  const std::string script = demo_script(fs::read_symlink("/proc/self/exe")).string();
  const std::string folder = s.words.empty() ? "tessera-demo" : s.words.front();
  const std::string num_epochs = s.epochs > 0 ? fmt::format("{}", s.epochs) : "";
  // Ranks that are processes on CPUs meet by MPI; one alone needs none.
  const OpenMpi mpi = find_open_mpi(Environment::of_process());
  std::string why_one_rank = mpi_support() == nullptr ? no_mpi_reason() : "";
  if (why_one_rank.empty() && mpi.mpirun.empty()) why_one_rank = "no mpirun in PATH: " + advice_for_open_mpi(mpi);
  ::setenv("TESSERA", this_program().path.c_str(), 1);
  ::execlp("bash", "bash", script.c_str(), folder.c_str(), num_epochs.c_str(), why_one_rank.c_str(), nullptr);
  throw Error(fmt::format("cannot start bash, which runs the demo: {}", std::strerror(errno)));
}

}  // namespace

Command launch_command() {
  return {.name = "launch",
          .summary = "start ranks on this host, as torchrun does",
          .about = kAboutLaunch,
          .declare = [](Schema& schema) { declare(schema, schema.keep<LaunchSettings>()); },
          .run = run_launch};
}

// Not for users: `tessera launch` starts one per rank.
Command minder_command() {
  return {.name = "__minder", .run = run_rank_runner};
}

Command train_command() {
  Command train{.name = "train", .run = run_train};
  for (const JobTraits* job : job_traits()) {
    train.jobs.push_back({.name = "train " + job->name, .summary = job->summary, .declare = [job](Schema& schema) {
                            declare(schema, *job, schema.keep<DeclaredSettings>());
                            declare(schema, schema.keep<WorldOptions>());
                          }});
  }
  train.summary = "train a model: " + join(texts_of(job_traits(), &JobTraits::name), ", ");
  return train;
}

Command demo_command() {
  return with_settings<DemoSettings>(
      {.name = "demo",
       .summary = "train a small BLOOM on this machine, in about two minutes",
       .about = "train a small BLOOM on this machine in about two minutes; FOLDER is replaced if a demo made it",
       .has_rank = false},
      declare, run_demo);
}

}  // namespace tessera

#include "launch/settings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace tessera {
namespace {

constexpr int kDefaultPort = 29500;  // torchrun's --master_port
constexpr int kMostNodes = 100'000, kMostLocalRanks = 10'000;

struct Endpoint {
  std::string host;
  int port = 0;  // 0: not given
};

int resolve_num_nodes(const LaunchSettings& settings) {
  const auto colon = settings.nnodes.find(':');
  const std::string number = settings.nnodes.substr(0, colon);
  if (colon != std::string::npos && settings.nnodes.substr(colon + 1) != number) {
    throw UsageError(fmt::format("--nnodes {}: a variable number of nodes (MIN:MAX) is not supported; give one number",
                                 settings.nnodes));
  }
  const auto count = parse_integer(number);
  if (!count || *count < 1 || *count > kMostNodes) {
    throw UsageError(
        fmt::format("--nnodes '{}': expected a number of nodes, at least 1, at most {}", settings.nnodes, kMostNodes));
  }
  if (settings.standalone && *count != 1) {
    throw UsageError(fmt::format("--standalone is for one node, but --nnodes is {}", settings.nnodes));
  }
  return static_cast<int>(*count);
}

int resolve_num_ranks(const std::string& text, const HostFacts& host) {
  const int cpus = std::max<int>(1, static_cast<int>(host.cpus.size()));
  if (text == "cpu") return cpus;
  if (text == "gpu" && host.num_gpus == 0) {
    throw UsageError(
        "--nproc_per_node gpu: no NVIDIA GPU is visible here (no /dev/nvidia0, or CUDA_VISIBLE_DEVICES "
        "hides them); use auto, cpu or a number");
  }
  if (text == "gpu") return host.num_gpus;
  // Half the cores: each rank keeps one for its communication and its data.
  if (text == "auto") return host.num_gpus > 0 ? host.num_gpus : std::max(1, num_cores(host.cpus) / 2);
  const auto count = parse_integer(text);
  if (!count || *count < 1 || *count > kMostLocalRanks) {
    throw UsageError(
        fmt::format("--nproc_per_node '{}': expected auto, gpu, cpu or a number of ranks, at least 1, at most {}", text,
                    kMostLocalRanks));
  }
  return static_cast<int>(*count);
}

int resolve_node_rank(const LaunchSettings& settings, int num_nodes) {
  if (settings.node_rank < 0 && num_nodes == 1) return 0;
  if (settings.node_rank < 0) {
    throw UsageError(
        fmt::format("--nnodes {}: the number of this node is unknown; give --node_rank 0..{}, set NODE_RANK, or start "
                    "with srun, one task per node",
                    num_nodes, num_nodes - 1));
  }
  if (settings.node_rank >= num_nodes) {
    throw UsageError(fmt::format("--node_rank {}: with --nnodes {} it must be 0 to {}", settings.node_rank, num_nodes,
                                 num_nodes - 1));
  }
  return settings.node_rank;
}

// "host", "host:29500", "[::1]:29500", "::1".
Endpoint parse_endpoint(const std::string& text) {
  std::string host = text, port;
  if (const auto bracket = text.find(']'); text.starts_with('[') && bracket != std::string::npos) {
    host = text.substr(1, bracket - 1);
    port = text.substr(bracket + 1);
    if (!port.empty() && port[0] != ':') host.clear();
    if (!port.empty()) port.erase(0, 1);
  } else if (std::ranges::count(text, ':') == 1) {
    host = text.substr(0, text.find(':'));
    port = text.substr(text.find(':') + 1);
    if (port.empty()) host.clear();
  }
  const auto number = port.empty() ? std::optional<long long>(0) : parse_integer(port);
  if (host.empty() || !number || *number < 0 || *number > 65535) {
    throw UsageError(fmt::format("--rdzv_endpoint '{}': expected host or host:port, port 1 to 65535", text));
  }
  return {host, static_cast<int>(*number)};
}

Endpoint resolve_head(const LaunchSettings& settings, int num_nodes) {
  if (settings.standalone) return {};
  Endpoint head{settings.master_addr, settings.master_port};
  if (!settings.rdzv_endpoint.empty()) {
    const Endpoint other = parse_endpoint(settings.rdzv_endpoint);
    if ((!head.host.empty() && head.host != other.host) ||
        (head.port != 0 && other.port != 0 && head.port != other.port)) {
      throw UsageError(fmt::format("--rdzv_endpoint {} and{}{} name two rendezvous addresses; give one",
                                   settings.rdzv_endpoint, head.host.empty() ? "" : " --master_addr " + head.host,
                                   head.port == 0 ? "" : fmt::format(" --master_port {}", head.port)));
    }
    head = {other.host, other.port != 0 ? other.port : head.port};
  }
  if (num_nodes > 1 && head.host.empty()) {
    throw UsageError(
        fmt::format("--nnodes {}: the address of node 0 is unknown; give --rdzv_endpoint HOST:PORT or "
                    "--master_addr HOST",
                    num_nodes));
  }
  if (num_nodes > 1 && head.port == 0) head.port = kDefaultPort;
  return head;
}

// Only for messages and to tell apart two jobs on one port: not a secret.
std::string new_run_id() {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return fmt::format("{:x}-{:x}", static_cast<unsigned>(getpid()), static_cast<unsigned long long>(now) & 0xffffffff);
}

// Hyphens and underscores are the same, as in names of settings: comm_test is comm-test.
std::optional<std::string> find_subcommand(std::string word, const std::vector<std::string>& subcommands) {
  std::ranges::replace(word, '_', '-');
  const auto found = std::ranges::find(subcommands, word);
  return found != subcommands.end() ? std::optional(*found) : std::nullopt;
}

std::vector<std::string> resolve_command(const LaunchSettings& settings, const Environment& environment,
                                         const std::string& self, const std::vector<std::string>& subcommands) {
  std::vector<std::string> command = settings.command;
  if (command.empty())
    throw UsageError("nothing to launch: give a program, or a subcommand of tessera, after the flags");
  if (const auto own = find_subcommand(command[0], subcommands)) {
    command[0] = *own;
    command.insert(command.begin(), self);
    return command;
  }
  try {
    command[0] = find_program(command[0], environment);
  } catch (const UsageError& error) {
    const auto meant = nearest(command[0], subcommands);
    if (!meant) throw;
    throw UsageError(fmt::format("{}; did you mean the subcommand '{}'?", error.what(), *meant));
  }
  return command;
}

// A command of ours that is told to use the CPU communicates by MPI, whatever the host has.
bool uses_gpus(const std::vector<std::string>& command, const std::string& self, const HostFacts& host) {
  if (command[0] != self) return host.num_gpus > 0;
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (command[i] == "--device=cpu" || command[i] == "--backend=mpi") return false;
    const std::string next = i + 1 < command.size() ? command[i + 1] : "";
    if ((command[i] == "--device" && next == "cpu") || (command[i] == "--backend" && next == "mpi")) return false;
  }
  return host.num_gpus > 0;
}

Starter resolve_starter(const LaunchSettings& settings, bool gpus_are_used, int num_nodes) {
  if (settings.starter == "fork") return Starter::kFork;
  if (settings.starter == "mpirun" && num_nodes > 1) {
    throw UsageError(
        fmt::format("--starter mpirun starts the ranks of one host, but --nnodes is {}; for MPI ranks on "
                    "several hosts use srun --mpi=pmix or mpirun itself",
                    num_nodes));
  }
  if (settings.starter == "mpirun") return Starter::kMpirun;
  return gpus_are_used || num_nodes > 1 ? Starter::kFork : Starter::kMpirun;
}

// Tessera's own subcommands use MPI if there is no GPU, and forked ranks have no MPI between them.
void check_can_talk(const LaunchPlan& plan, bool gpus_are_used, const std::string& self) {
  if (plan.command[0] != self || gpus_are_used || plan.starter != Starter::kFork) return;
  const std::string what = plan.command[1];
  if (plan.num_nodes > 1) {
    throw UsageError(
        fmt::format("--nnodes {}: '{}' on CPUs needs MPI between the nodes, which this launcher does not provide; "
                    "start it with srun --mpi=pmix tessera {} or mpirun --host A,B tessera {}",
                    plan.num_nodes, what, what, what));
  }
}

}  // namespace

void declare(Schema& schema, LaunchSettings& s) {
  schema.group("Ranks");
  schema.text("nnodes", &s.nnodes, "number of nodes, one launcher on each", {.preset = "1"});
  schema.text(
      "nproc_per_node", &s.nproc_per_node,
      "ranks on this node: a number; gpu: one per GPU; cpu: one per processor; auto: one per GPU, else one per two "
      "cores",
      {.preset = "auto"});
  schema.integer("node_rank", &s.node_rank, "number of this node, from 0; -1: taken from the environment",
                 {.preset = "-1", .at_least = -1, .environment = {"NODE_RANK", "SLURM_NODEID"}});
  schema.integer("max_restarts", &s.max_restarts, "how often all ranks are restarted after one has failed",
                 {.preset = "0", .at_least = 0, .at_most = 1'000'000});
  schema.text("starter", &s.starter,
              "what starts the ranks: mpirun (CPU ranks that use MPI), fork (GPU ranks, and programs with their own "
              "communication); auto: fork with a GPU or several nodes, else mpirun",
              {.preset = "auto", .choices = {"auto", "mpirun", "fork"}});
  schema.text("pin", &s.pin, "give each rank its own cores if there are enough; auto: only without GPUs",
              {.preset = "auto", .choices = {"auto", "yes", "no"}});

  schema.group("Rendezvous");
  schema.text("rdzv_endpoint", &s.rdzv_endpoint, "HOST[:PORT] of node 0, where the nodes meet", {.preset = ""});
  schema.text("rdzv_backend", &s.rdzv_backend, "both have the same effect here",
              {.preset = "c10d", .choices = {"c10d", "static"}});
  schema.text("rdzv_id", &s.rdzv_id, "name of the job: tells apart two jobs on one port", {.preset = ""});
  schema.text("master_addr", &s.master_addr, "HOST of node 0, as in --rdzv_endpoint", {.preset = ""});
  schema.integer("master_port", &s.master_port, "port of node 0; 0: any free one on one node, 29500 on several",
                 {.preset = "0", .at_least = 0, .at_most = 65535});
  schema.boolean("standalone", &s.standalone, "one node; the address and port settings are ignored");

  schema.group("Output");
  schema.text("log_dir", &s.log_dir,
              "one file per rank, rank-R.log, appended to; rank 0 is also shown, the others are not", {.preset = ""});
  schema.boolean(
      "tee", &s.tee,
      "show every rank's lines, with '[rank R] ' before each; torchrun's --tee 0 to --tee 3 are read as no or yes",
      {.short_name = 't'});

  schema.group("Time limits");
  schema.duration("start_timeout", &s.start_timeout, "time limit for all nodes and ranks to connect",
                  {.preset = "5m", .at_least = 0.1});
  schema.duration(
      "stop_timeout", &s.stop_timeout,
      "how long ranks may take to exit after SIGTERM, SIGINT or SIGHUP to the launcher; a second signal ends them "
      "at once",
      {.preset = "30s", .at_least = 0});
  schema.duration("node_timeout", &s.node_timeout, "a node that does not respond for this long is considered lost",
                  {.preset = "15s", .at_least = 1});
  declare_habits(schema, s);
  schema.positionals("PROGRAM|SUBCOMMAND ARGS...", &s.command, true);
}

LaunchPlan make_plan(const LaunchSettings& settings, const HostFacts& host, const Environment& environment,
                     const std::string& self, const std::vector<std::string>& subcommands) {
  refuse_what_is_done_otherwise(settings);
  LaunchPlan plan;
  static_cast<LaunchOptions&>(plan) = settings;
  plan.remarks = remarks_on(settings);
  plan.num_nodes = resolve_num_nodes(settings);
  plan.num_local_ranks = resolve_num_ranks(settings.nproc_per_node, host);
  plan.node_rank = resolve_node_rank(settings, plan.num_nodes);
  const Endpoint head = resolve_head(settings, plan.num_nodes);
  plan.head_host = head.host;
  plan.head_port = head.port;
  plan.run_id = settings.rdzv_id;
  // Several nodes agree on the id only if it is given: a made-up one would differ on each.
  if (plan.run_id.empty() && plan.num_nodes == 1) plan.run_id = new_run_id();
  plan.pin = settings.pin == "yes" || (settings.pin == "auto" && host.num_gpus == 0);
  plan.command = resolve_command(settings, environment, self, subcommands);
  const bool gpus_are_used = uses_gpus(plan.command, self, host);
  plan.starter = resolve_starter(settings, gpus_are_used, plan.num_nodes);
  check_can_talk(plan, gpus_are_used, self);
  return plan;
}

}  // namespace tessera

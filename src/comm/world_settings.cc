#include "comm/world_settings.h"

namespace tessera {

void declare(Schema& schema, WorldOptions& options) {
  schema.group("Ranks");
  schema.text("backend", &options.backend, "auto: nccl if every rank has its own GPU, else mpi",
              {.preset = "auto", .choices = {"auto", "mpi", "nccl"}});
  schema.text("device", &options.device, "where the tensors are; auto: cuda with nccl, else cpu",
              {.preset = "auto", .choices = {"auto", "cpu", "cuda"}});
  schema.boolean("share_gpus", &options.share_gpus,
                 "let several ranks use one GPU, with --device cuda and --backend mpi; without it they are refused");
  schema.duration("comm_timeout", &options.comm_timeout,
                  "a collective that takes longer ends the run, with a diagnosis", {.preset = "10m", .at_least = 0.1});
  schema.duration("start_timeout", &options.start_timeout, "time limit for all ranks to connect",
                  {.preset = "1m", .at_least = 0.1});
  schema.integer("ranks_per_node", &options.ranks_per_node,
                 "pretend that each node has this many ranks; 0: the real number", {.preset = "0", .at_least = 0});
  schema.word("log_ranks", &options.log_all_ranks, {"0", "all"}, "the ranks that report their start", {.preset = "0"});
}

WorldOptions options_of(WorldOptions options, const Schema& schema) {
  const Json chosen = schema.to_json();
  for (const auto& [name, value] : chosen.items()) {
    // Settings that are accepted without effect may differ: a launcher's --local_rank does.
    if (!schema.at(name).is_hidden()) options.settings[name] = value.get<std::string>();
  }
  return options;
}

}  // namespace tessera

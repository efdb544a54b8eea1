#include "comm/world_settings.h"

namespace tessera {

void declare(Schema& schema, WorldSettings& settings) {
  const std::string group = "Ranks";
  WorldOptions& options = settings.options;
  schema.text("backend", &options.backend)
      .preset("auto")
      .choices({"auto", "mpi", "nccl"})
      .group(group)
      .help("auto: nccl if every rank has its own GPU, else mpi");
  schema.text("device", &options.device)
      .preset("auto")
      .choices({"auto", "cpu", "cuda"})
      .group(group)
      .help("where the tensors are; auto: cuda with nccl, else cpu");
  schema.boolean("share_gpus", &options.share_gpus)
      .preset("false")
      .group(group)
      .help("let several ranks use one GPU, with --device cuda and --backend mpi; without it they are refused");
  schema.duration("comm_timeout", &options.comm_timeout)
      .preset("10m")
      .at_least(0.1)
      .group(group)
      .help("a collective that takes longer ends the run, with a diagnosis");
  schema.duration("start_timeout", &options.start_timeout)
      .preset("1m")
      .at_least(0.1)
      .group(group)
      .help("time limit for all ranks to connect");
  schema.integer("ranks_per_node", &options.ranks_per_node)
      .preset("0")
      .at_least(0)
      .group(group)
      .help("pretend that each node has this many ranks; 0: the real number");
  schema.text("log_ranks", &settings.log_ranks)
      .preset("0")
      .choices({"0", "all"})
      .group(group)
      .help("the ranks that report their start");
}

WorldOptions options_of(const WorldSettings& settings, const Schema& schema) {
  WorldOptions options = settings.options;
  options.log_all_ranks = settings.log_ranks == "all";
  const Json chosen = schema.to_json();
  for (const auto& [name, value] : chosen.items()) {
    // Settings that are accepted without effect may differ: a launcher's --local_rank does.
    if (!schema.at(name).is_hidden()) options.settings[name] = value.get<std::string>();
  }
  return options;
}

}  // namespace tessera

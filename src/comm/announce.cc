#include "comm/announce.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "comm/gpu_support.h"

namespace tessera {
namespace {

// The number of ranks of every node, or 0 if they differ.
int ranks_per_node(const World& world) {
  const auto on_node = [&](int node) { return std::ranges::count(world.node_of_rank(), node); };
  const auto first = on_node(world.node_of_rank().front());
  const bool alike = std::ranges::all_of(world.node_of_rank(), [&](int node) { return on_node(node) == first; });
  return alike ? static_cast<int>(first) : 0;
}

std::string size_line(const World& world) {
  const char* what = world.device().is_cuda() ? "GPUs" : "ranks";
  if (const int per_node = ranks_per_node(world)) {
    return fmt::format("Running on {} nodes x {} {} = {} total {}\n", world.num_nodes(), per_node, what, world.size(),
                       what);
  }
  return fmt::format("Running on {} nodes, {} total {} (not the same number on each)\n", world.num_nodes(),
                     world.size(), what);
}

std::string device_line(const World& world) {
  if (!world.device().is_cuda()) return {};
  return fmt::format("Device of rank {}: {} ({})\n", world.rank(), gpu_support()->info(world.device().index()).name,
                     world.device().str());
}

// One write, so that the lines of several ranks do not mix. A failed write shows when the command prints its own lines.
void print(const std::string& lines) {
  std::fputs(lines.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace

void announce_start(const WorldOptions& options, int rank, const Address& head) {
  if (!options.log_all_ranks) return;
  print(fmt::format("Initializing process group for rank {}\nMASTER_ADDR: {}\nMASTER_PORT: {}\n", rank, head.host,
                    head.port));
}

void announce_world(const WorldOptions& options, const World& world, const Address& head) {
  if (options.banner && world.rank() == 0) {
    print(size_line(world));
    if (head.port != 0)
      print(fmt::format("Head: {} port {}; backend {}\n", head.host, head.port, world.backend_name()));
  }
  if (options.log_all_ranks || (options.banner && world.rank() == 0)) print(device_line(world));
  if (options.log_all_ranks) print(fmt::format("initialized: rank {} / world size {}\n", world.rank(), world.size()));
}

}  // namespace tessera

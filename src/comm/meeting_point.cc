#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "comm/gpu_support.h"
#include "comm/meeting/handshake.h"
#include "comm/mpi_support.h"
#include "comm/socket.h"
#include "comm/world_impl.h"
#include "core/error.h"
#include "core/host.h"
#include "core/json.h"

namespace tessera {
namespace {

bool is_one_host(const RankEnv& self) {
  return self.local_size == self.world_size;
}

// Returns the port.
int open_place(const RankEnv& self, const std::string& interface, int port, const Key& key,
               std::chrono::milliseconds timeout, std::unique_ptr<MeetingPlace>& place) {
  place = std::make_unique<MeetingPlace>(MeetingOptions{
      .interface = interface, .port = port, .num_peers = self.world_size, .key = key, .timeout = timeout});
  return place->port();
}

MeetingPoint point_of_environment(const RankEnv& self, const Environment& environment,
                                  std::chrono::milliseconds timeout, std::unique_ptr<MeetingPlace>& place) {
  if (!self.master_addr || !self.master_port) {
    throw rendezvous_error(fmt::format("{} is not set: rank 0's host and port must be known to all ranks",
                                       self.master_addr ? "MASTER_PORT" : "MASTER_ADDR"));
  }
  const std::optional<Key> secret = take_secret_of_environment();
  if (self.launched && !secret) {
    throw rendezvous_error(
        "TESSERA_LAUNCHED is set, but TESSERA_SECRET is not: start the ranks with this version's `tessera launch`");
  }
  const Key key = job_key(secret ? *secret : secret_of_file(environment), self.job_id);
  if (self.launched) return {{*self.master_addr, *self.master_port}, key};
  const std::string interface = interface_of(*self.master_addr, is_one_host(self));
  if (self.rank == 0) open_place(self, interface, *self.master_port, key, timeout, place);
  return {{is_one_host(self) ? interface : *self.master_addr, *self.master_port}, key};
}

Json offer_of_first_rank(const RankEnv& self, std::chrono::milliseconds timeout, std::unique_ptr<MeetingPlace>& place) {
  const bool port_is_wanted = self.source != "Slurm" && self.master_port.has_value();
  const std::string host = self.master_addr.value_or(is_one_host(self) ? "127.0.0.1" : host_name());
  const Key key = random_key();
  const int port = open_place(self, interface_of(host, is_one_host(self)), port_is_wanted ? *self.master_port : 0, key,
                              timeout, place);
  return {{"host", is_one_host(self) ? "127.0.0.1" : host}, {"port", port}, {"key", to_hex(key)}};
}

// If rank 0 cannot open the place, all ranks fail.
MeetingPoint point_by_mpi(const RankEnv& self, std::chrono::milliseconds timeout,
                          std::unique_ptr<MeetingPlace>& place) {
  Json offer;
  if (self.rank == 0) {
    try {
      offer = offer_of_first_rank(self, timeout, place);
    } catch (const Error& error) {
      offer = {{"why", error.what()}};
    }
  }
  offer = parse_json(required_mpi().broadcast_text(offer.dump(), timeout), "rank 0's address");
  if (offer.contains("why")) throw rendezvous_error("rank 0: " + offer.at("why").get<std::string>());
  const auto key = key_from_hex(offer.at("key").get<std::string>());
  if (!key) throw rendezvous_error("rank 0 has sent no key by MPI");
  return {{offer.at("host"), offer.at("port")}, *key};
}

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

MeetingPoint find_meeting_point(const RankEnv& self, bool by_mpi, std::chrono::milliseconds timeout,
                                const Environment& environment, std::unique_ptr<MeetingPlace>& place) {
  if (self.world_size == 1 && !self.launched) {
    const Key key = random_key();
    return {{"127.0.0.1", open_place(self, "127.0.0.1", 0, key, timeout, place)}, key};
  }
  if (by_mpi && !self.launched) return point_by_mpi(self, timeout, place);
  return point_of_environment(self, environment, timeout, place);
}

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

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

class MeetingPointFinder {
 public:
  MeetingPointFinder(const RankEnv& self, std::chrono::milliseconds timeout, std::unique_ptr<MeetingPlace>& place)
      : self_(self), timeout_(timeout), place_(place) {}

  MeetingPoint alone() {
    const Key key = random_key();
    return {{"127.0.0.1", open("127.0.0.1", 0, key)}, key};
  }

  MeetingPoint of_environment(const Environment& environment) {
    if (!self_.master_addr || !self_.master_port) {
      throw rendezvous_error(fmt::format("{} is not set: rank 0's host and port must be known to all ranks",
                                         self_.master_addr ? "MASTER_PORT" : "MASTER_ADDR"));
    }
    const std::optional<Key> secret = take_secret_of_environment();
    if (self_.launched && !secret) {
      throw rendezvous_error(
          "TESSERA_LAUNCHED is set, but TESSERA_SECRET is not: start the ranks with this version's `tessera launch`");
    }
    const Key key = job_key(secret ? *secret : secret_of_file(environment), self_.job_id);
    if (self_.launched) return {{*self_.master_addr, *self_.master_port}, key};
    const std::string interface = interface_of(*self_.master_addr, is_one_host_);
    if (self_.rank == 0) open(interface, *self_.master_port, key);
    return {{is_one_host_ ? interface : *self_.master_addr, *self_.master_port}, key};
  }

  // If rank 0 cannot open the place, all ranks fail.
  MeetingPoint of_mpi() {
    Json offer;
    if (self_.rank == 0) {
      try {
        offer = offer_of_first_rank();
      } catch (const Error& error) {
        offer = {{"why", error.what()}};
      }
    }
    offer = parse_json(required_mpi().broadcast_text(offer.dump(), timeout_), "rank 0's address");
    if (offer.contains("why")) throw rendezvous_error("rank 0: " + offer.at("why").get<std::string>());
    const auto key = key_from_hex(offer.at("key").get<std::string>());
    if (!key) throw rendezvous_error("rank 0 has sent no key by MPI");
    return {{offer.at("host"), offer.at("port")}, *key};
  }

 private:
  Json offer_of_first_rank() {
    const bool port_is_wanted = self_.source != "Slurm" && self_.master_port.has_value();
    const std::string host = self_.master_addr.value_or(is_one_host_ ? "127.0.0.1" : host_name());
    const Key key = random_key();
    const int port = open(interface_of(host, is_one_host_), port_is_wanted ? *self_.master_port : 0, key);
    return {{"host", is_one_host_ ? "127.0.0.1" : host}, {"port", port}, {"key", to_hex(key)}};
  }

  int open(const std::string& interface, int port, const Key& key) {
    MeetingOptions meeting;
    meeting.interface = interface;
    meeting.port = port;
    meeting.num_peers = self_.world_size;
    meeting.key = key;
    meeting.timeout = timeout_;
    place_ = std::make_unique<MeetingPlace>(std::move(meeting));
    return place_->port();
  }

  const RankEnv& self_;
  const std::chrono::milliseconds timeout_;
  std::unique_ptr<MeetingPlace>& place_;
  const bool is_one_host_ = self_.local_size == self_.world_size;
};

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
  MeetingPointFinder finder(self, timeout, place);
  if (self.world_size == 1 && !self.launched) return finder.alone();
  return self.launched || !by_mpi ? finder.of_environment(environment) : finder.of_mpi();
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

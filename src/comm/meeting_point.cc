#include "comm/meeting_point.h"

#include <fmt/format.h>

#include "comm/meeting/secret.h"
#include "comm/mpi_support.h"
#include "comm/socket.h"
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
    Json word;
    if (self_.rank == 0) {
      try {
        word = word_of_first_rank();
      } catch (const Error& error) {
        word = {{"why", error.what()}};
      }
    }
    word = parse_json(required_mpi().broadcast_text(word.dump(), timeout_), "rank 0's word");
    if (word.contains("why")) throw rendezvous_error("rank 0: " + word.at("why").get<std::string>());
    const auto key = key_from_hex(word.at("key").get<std::string>());
    if (!key) throw rendezvous_error("rank 0 has sent no key by MPI");
    return {{word.at("host"), word.at("port")}, *key};
  }

 private:
  Json word_of_first_rank() {
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
    meeting.num_guests = self_.world_size;
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

}  // namespace

MeetingPoint find_meeting_point(const RankEnv& self, bool by_mpi, std::chrono::milliseconds timeout,
                                const Environment& environment, std::unique_ptr<MeetingPlace>& place) {
  MeetingPointFinder finder(self, timeout, place);
  if (self.world_size == 1 && !self.launched) return finder.alone();
  return self.launched || !by_mpi ? finder.of_environment(environment) : finder.of_mpi();
}

}  // namespace tessera
